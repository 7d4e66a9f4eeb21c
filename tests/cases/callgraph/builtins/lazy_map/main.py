def double(x):
    return x * 2


def make(numbers):
    return map(double, numbers)


def read(lazy):
    return list(lazy)


read(make([1, 2]))
