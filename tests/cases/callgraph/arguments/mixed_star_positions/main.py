def f():
    return 1


def g():
    return 2


def h():
    return 3


def run(a, b, c):
    a()
    b()
    return c


pair = (f, g)
run(*pair, 1)
run(h, *(g, h))()
