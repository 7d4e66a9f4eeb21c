def f():
    return 1


def g():
    return 2


actions = {f}
actions.add(g)
for action in actions:
    action()
