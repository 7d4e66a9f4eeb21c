def work():
    return 1


def other():
    return 2


def run():
    work = other
    return work()


run()
