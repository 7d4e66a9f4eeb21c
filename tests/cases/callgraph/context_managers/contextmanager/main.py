from contextlib import contextmanager


def begin():
    return 1


def end():
    return 2


@contextmanager
def step():
    begin()
    yield
    end()


def use():
    with step():
        pass


use()
