class Vec:
    def __init__(self, *xs):
        self.xs = xs

    def __add__(self, other):
        return Vec(*(a + b for a, b in zip(self.xs, other.xs)))

    def __mul__(self, k):
        return Vec(*[x * k for x in self.xs])

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __iadd__(self, other):
        self.xs = (self + other).xs
        return self

    def __abs__(self):
        return sum(self.xs)

    def __bool__(self):
        return any(self.xs)

    def __eq__(self, other):
        return self.xs == other.xs


def use():
    v = Vec(1, 2)
    w = 2 * v
    v += w - v
    if v and v != w:
        return abs(v)
    return -v


use()
