def load():
    return 1


def parse(*, reader=None):
    return reader()


parse(reader=load)
