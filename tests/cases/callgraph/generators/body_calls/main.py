def load(n):
    return n


def rows():
    for n in (1, 2):
        yield load(n)


def make():
    return rows()


def consume(source):
    return list(source)


consume(make())
