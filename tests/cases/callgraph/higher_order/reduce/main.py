from functools import reduce


def add(a, b):
    return a + b


def total(numbers):
    return reduce(add, numbers)


total([1, 2])
