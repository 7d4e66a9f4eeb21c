from functools import partial


def task(name, *, before, after):
    before(name)
    return after(name)


def b(name):
    return name


def a(name):
    return name


with_before = partial(task, before=b)
full = partial(with_before, after=a)


def run():
    return full("x")


run()
