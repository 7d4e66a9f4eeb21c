import parent

parent.Parent().grow()
