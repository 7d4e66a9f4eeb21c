def start():
    return 1


def stop():
    return 2


def both():
    return start, stop


def use():
    begin, end = both()
    return end()


use()
