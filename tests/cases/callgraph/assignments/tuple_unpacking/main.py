def f():
    return 1


def g():
    return 2


def use():
    a, b = f, g
    return b()


use()
