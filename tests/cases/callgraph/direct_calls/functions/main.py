def a():
    return b() + c()


def b():
    return c()


def c():
    return 1


a()
