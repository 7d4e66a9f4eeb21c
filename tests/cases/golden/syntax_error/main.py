def good():
    return 1


def broken(:
    return 2


good(
