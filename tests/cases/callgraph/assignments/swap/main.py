def f():
    return 1


def g():
    return 2


def swapped():
    a, b = f, g
    a, b = b, a
    return a()


swapped()
