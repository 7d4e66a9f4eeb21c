class Stack:
    def push(self):
        return self.grow()

    def grow(self):
        return 1


Stack().push()
