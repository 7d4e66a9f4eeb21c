def first():
    return 1


def middle():
    return 2


def last():
    return 3


head, *rest, tail = [first, middle, last]
for action in rest:
    action()
