def double(x):
    return x * 2


def doubled(numbers):
    return [double(n) for n in numbers]


doubled([1])
