def red():
    return 1


def blue():
    return 2


def run(action):
    return action()


def first():
    return run(red)


def second():
    return run(blue)


first()
second()
