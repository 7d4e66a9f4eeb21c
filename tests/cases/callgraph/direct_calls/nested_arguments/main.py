def add(a, b):
    return a + b


def one():
    return 1


def two():
    return 2


add(one(), add(b=two(), a=1))
