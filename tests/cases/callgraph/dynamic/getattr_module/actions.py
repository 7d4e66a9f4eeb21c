def start():
    return 1


def stop():
    return 2
