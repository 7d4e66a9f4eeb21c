def low():
    return 1


def high():
    return 2


def choose(n):
    if n > 1:
        return high
    return low


choose(2)()
