def same(x):
    return x


def again(x):
    return same(x)


def f():
    return 1


def g():
    return 2


def use_f():
    again(f)()


def use_g():
    again(g)()


use_f()
use_g()
