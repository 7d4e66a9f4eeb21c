class Ring:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        self.i += 1
        if self.i > self.n:
            raise StopIteration
        return "x"


def a(r):
    return list(r)


def b(r):
    return "".join(r)


def c(r):
    return dict(zip(r, r))


def d(r):
    first, *rest = r
    return first


def e(*args):
    return args


def f(r):
    return e(*r)


def g(r):
    yield from r


def h(r):
    return "y" in r


ring = Ring(2)
for use in (a, b, c, d, f, h):
    use(ring)
list(g(ring))
