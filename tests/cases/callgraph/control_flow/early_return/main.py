def quick():
    return 1


def slow():
    return 2


def run(flag):
    if flag:
        return quick()
    return slow()


run(False)
