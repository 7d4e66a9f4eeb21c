import functools


def apply(action, value):
    return action(value)


def double(n):
    return n * 2


def use():
    doubler = functools.partial(apply, double)
    return doubler(4)


use()
