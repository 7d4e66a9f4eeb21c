from collections import namedtuple


class Point(namedtuple("Point", "x y")):
    def dist(self):
        return self.norm(self.x, self.y)

    @staticmethod
    def norm(x, y):
        return x + y


Point(1, 2).dist()
Point(1, 2)._replace(x=3).dist()
