def read():
    return 1


def write():
    return 2


def pair():
    return read, write


pair()[0]()
