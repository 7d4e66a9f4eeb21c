import functools


def log(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


class A:
    def run(self):
        return 1


class B:
    def run(self):
        return 2


@log
def make_a():
    return A()


@log
def make_b():
    return B()


def use_a():
    return make_a().run()


def use_b():
    return make_b().run()


use_a()
use_b()
