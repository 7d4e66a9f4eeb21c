def target():
    return 1


def choose():
    return target


def use():
    action = choose()
    return action()


use()
