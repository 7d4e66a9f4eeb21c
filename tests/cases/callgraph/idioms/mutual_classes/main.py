from parent import Parent

Parent().spawn().sibling().orphan().wave()
