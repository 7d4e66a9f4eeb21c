"""Values that go somewhere: arguments, copies, attributes, variables of modules, closures."""

from shop.paths import steps

LIMIT = 3


def give(amount):
    copied = amount
    take(copied, amount)
    return amount


def take(one, two=0):
    return keep(two)


def keep(value):
    value = value + 1
    return value


def loop(n):
    if n:
        loop(n)


class Shelf:
    def __init__(self, item):
        self.item = item

    def show(self):
        return keep(self.item)


def outer(x):
    def inner():
        return keep(x)

    return inner


def bounded(n):
    return keep(LIMIT) + n


def idle(unused):
    steps.send(order := 1)
    return order
