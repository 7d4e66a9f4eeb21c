def first():
    def inner():
        return one()

    return inner()


def second():
    def inner():
        return two()

    return inner()


def one():
    return 1


def two():
    return 2


first()
second()
