import functools


def traced(function=None, *, label=""):
    if function is None:
        return functools.partial(traced, label=label)

    @functools.wraps(function)
    def wrapper(*args):
        note(label)
        return function(*args)

    return wrapper


def note(label):
    return label


@traced
def a():
    return 1


@traced(label="b")
def b():
    return 2


a()
b()
