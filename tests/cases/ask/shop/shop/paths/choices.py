"""A call that may run one of two functions."""


def one():
    return 1


def two():
    return 2


def either(flag):
    chosen = one if flag else two
    return chosen()
