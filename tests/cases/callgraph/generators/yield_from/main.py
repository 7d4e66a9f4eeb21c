def job():
    return 1


def inner():
    yield job


def outer():
    yield from inner()


for each in outer():
    each()
