def given():
    return 1


def own():
    return 2


def run(action):
    action = own
    return action()


run(given)
