class M:
    def __matmul__(self, other):
        return self

    def __divmod__(self, other):
        return self, other

    def __pow__(self, n):
        return self

    def __invert__(self):
        return self

    def __index__(self):
        return 0

    def __and__(self, other):
        return self

    def __floordiv__(self, other):
        return self


def use(m):
    m @ m
    q, r = divmod(m, 2)
    q**2
    ~m & m
    m //= 3
    return [1, 2][m]


use(M())
