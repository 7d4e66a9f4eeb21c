def run():
    return 1


def only_first():
    return 2
