import attr


@attr.s(auto_attribs=True)
class Point:
    x: int = 0

    def norm(self):
        return self.scale(2)

    def scale(self, k):
        return k


def use():
    return Point(1).norm()
