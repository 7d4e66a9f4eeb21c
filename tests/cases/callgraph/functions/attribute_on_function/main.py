def helper():
    return 1


def work():
    return work.helper()


work.helper = helper
work()
