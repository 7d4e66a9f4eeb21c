def a():
    return 1


def b():
    return 2


def c():
    return 3


for action in [a] + [b]:
    action()
for action in [*(c,)]:
    action()
