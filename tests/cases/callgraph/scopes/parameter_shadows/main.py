def action():
    return 1


def other():
    return 2


def run(action):
    return action()


run(other)
