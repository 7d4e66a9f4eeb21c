def helper():
    return 2


def run():
    return helper()
