def same(value):
    return value


def red():
    return 1


def blue():
    return 2


def first():
    return same(red)()


def second():
    return same(blue)()


first()
second()
