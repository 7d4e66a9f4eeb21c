def f():
    return 1


def g():
    return 2


def h():
    return 3


pair = (f, g)
table = [pair, (g, h)]
table[0][0]()


def use():
    first, second = table[1]
    return second()


use()
