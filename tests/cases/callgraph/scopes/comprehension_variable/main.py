def outside():
    return 1


def inside():
    return 2


def run():
    action = outside
    [action() for action in (inside,)]
    return action


run()()
