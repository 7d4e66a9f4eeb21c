def red():
    return 1


def pair():
    yield red
    yield red


first, second = pair()
first()
