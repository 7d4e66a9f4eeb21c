def yes():
    return 1


def no():
    return 2


def pick(flag):
    action = yes if flag else no
    return action()


pick(True)
