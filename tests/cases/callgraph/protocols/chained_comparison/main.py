class V:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n

    def __le__(self, other):
        return self.n <= other.n

    def __gt__(self, other):
        return self.n > other.n


def between(a, b, c):
    return a < b <= c


def most(a, b):
    return max(a, b)


between(V(1), V(2), V(3))
most(V(1), V(2))
