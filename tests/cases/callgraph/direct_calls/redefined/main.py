def old():
    return 1


def new():
    return 2


def work():
    return old()


def work():  # noqa: F811
    return new()


work()
