import second


def helper():
    return 1


def run():
    return helper()


run()
second.run()
