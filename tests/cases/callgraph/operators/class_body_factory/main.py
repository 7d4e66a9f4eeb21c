import operator


class Num:
    def __init__(self, n):
        self.n = n

    def _make(function):
        def forward(a, b):
            return Num(function(a.n, b.n))

        return forward

    __add__ = _make(operator.add)
    __mul__ = _make(lambda a, b: a * b)
    del _make


Num(1) + Num(2)
Num(1) * Num(2)
