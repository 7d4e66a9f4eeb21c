def outer():
    return middle


def middle():
    return inner


def inner():
    return 1


outer()()()
