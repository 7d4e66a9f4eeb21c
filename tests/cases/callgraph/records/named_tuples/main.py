from collections import namedtuple
from typing import NamedTuple


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


class Box(namedtuple("Box", "fruit, stone")):
    def open(self):
        self.fruit.peel()


class Crate(namedtuple("Crate", ["fruit", "stone"])):
    def open(self):
        self.stone.peel()


class Shelf(NamedTuple):
    fruit: object
    stone: object = None

    def open(self):
        self.fruit.peel()


Pair = namedtuple("Pair", ("fruit", "stone"))
Typed = NamedTuple("Typed", [("fruit", object), ("stone", object)])


def box():
    Box(Apple(), Brick()).open()


def crate():
    Crate(stone=Brick(), fruit=Apple()).open()


def shelf():
    Shelf(Apple()).open()
    _, stone = Shelf(Apple(), Brick())
    stone.peel()


def pair():
    made = Pair(Apple(), stone=Brick())
    made.fruit.peel()
    made[1].peel()


def typed():
    fruit, stone = Typed(Apple(), Brick())
    fruit.peel()


box()
crate()
shelf()
pair()
typed()
