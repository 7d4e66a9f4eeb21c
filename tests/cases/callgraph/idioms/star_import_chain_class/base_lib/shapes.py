from .util import area_of


class Shape:
    def area(self):
        return area_of(self)


def make():
    return Shape()
