def first():
    return second()


def second():
    return 2
