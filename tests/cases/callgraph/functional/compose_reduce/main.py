from functools import reduce


def compose(*functions):
    return reduce(lambda f, g: lambda x: g(f(x)), functions)


def inc(x):
    return x + 1


def dbl(x):
    return x * 2


compose(inc, dbl, inc)(3)
