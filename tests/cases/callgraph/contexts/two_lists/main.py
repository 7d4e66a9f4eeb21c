class A:
    def run(self):
        return 1


class B:
    def run(self):
        return 2


def first(items):
    return items[0]


def use_a():
    return first([A()]).run()


def use_b():
    return first([B()]).run()


use_a()
use_b()
