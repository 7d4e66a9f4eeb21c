def make():
    return work


def work():
    return 1


if (action := make()) is not None:
    action()
