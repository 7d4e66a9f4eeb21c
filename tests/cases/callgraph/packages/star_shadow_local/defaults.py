def load():
    return 1


def save():
    return 2
