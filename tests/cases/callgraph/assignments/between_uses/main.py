def f():
    return 1


def g():
    return 2


def before():
    action = f
    action()
    action = g
    return action


before()
