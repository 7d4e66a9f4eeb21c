def a():
    return 1


def b():
    return 2


def tasks():
    yield a
    yield b


for task in tasks():
    task()
