"""Calls that lead somewhere: two ways of one length, a cycle, classes, unknown ones."""

import json


def start(order):
    first(order)
    second(order)


def first(order):
    return finish(order)


def second(order):
    return finish(order)


def finish(order):
    return json.dumps(order)


def around(n):
    return again(n)


def again(n):
    return around(n)


def closed():
    return 1


def blind(anything):
    return anything.run()


class Box:
    def __init__(self, order):
        self.order = order

    def open(self):
        return finish(self.order)


class Crate(Box):
    def open(self):
        return 2


def pack(order):
    return Box(order)


def send(order):
    return pack(order)


def far(n):
    return near(n)


def near(n):
    return send(n)
