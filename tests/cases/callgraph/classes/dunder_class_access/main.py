class Node:
    def __init__(self, value):
        self.value = value

    def clone(self):
        return self.__class__(self.value)

    def twin(self):
        return type(self)(self.value)


class Special(Node):
    def mark(self):
        return 1


Special(1).clone().mark()
Special(2).twin().mark()
