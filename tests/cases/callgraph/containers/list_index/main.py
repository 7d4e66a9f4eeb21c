def a():
    return 1


def b():
    return 2


actions = [a, b]
actions[1]()
