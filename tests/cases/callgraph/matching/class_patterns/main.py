class Circle:
    def __init__(self, r):
        self.r = r

    def area(self):
        return self.r


class Wrapper:
    __match_args__ = ("shape",)

    def __init__(self, shape):
        self.shape = shape


def area(thing):
    match thing:
        case Wrapper(shape):
            return shape.area()
        case Circle() as circle:
            return circle.area()
        case _:
            return missing()


def missing():
    return 0


area(Wrapper(Circle(1)))
area(Circle(2))
area(None)
