def known():
    return 1


def run(callback):
    callback()
    return known()
