def one():
    return 1


def two():
    return 2


def second(a, b):
    return b()


second(one, two)
