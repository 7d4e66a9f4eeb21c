def a():
    return 1


def b():
    return 2


for action in [a, b]:
    action()
