def compose(f, g):
    def both(x):
        return f(g(x))

    return both


def inc(x):
    return x + 1


def dec(x):
    return x - 1


compose(inc, dec)(1)
