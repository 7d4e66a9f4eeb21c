class A:
    def go(self):
        return 1


class B:
    def go(self):
        return 2


def make(cls):
    return cls()


def use_a():
    make(A).go()


def use_b():
    make(B).go()


use_a()
use_b()
