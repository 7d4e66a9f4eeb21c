class Shape:
    def __new__(cls, kind):
        if kind == "round":
            return object.__new__(Round)
        return object.__new__(cls)

    def area(self):
        return 1


class Round(Shape):
    def area(self):
        return 3


def use(kind):
    return Shape(kind).area()


use("round")
use("flat")
