def other():
    return 2


def swap(function):
    return other


@swap
def work():
    return 1


work()
