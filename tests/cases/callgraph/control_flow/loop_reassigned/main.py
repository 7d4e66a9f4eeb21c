def first():
    return 1


def next_one():
    return 2


def run():
    action = first
    for _ in range(2):
        action()
        action = next_one


run()
