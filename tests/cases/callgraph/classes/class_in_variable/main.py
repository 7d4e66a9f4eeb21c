class Square:
    def __init__(self):
        self.sides = 4

    def area(self):
        return 1


def build(kind):
    return kind()


shape = Square
build(shape).area()
