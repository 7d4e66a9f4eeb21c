def double(x):
    return x * 2


def odd(x):
    return x % 2 == 1


numbers = list(map(double, filter(odd, [1, 2, 3])))
