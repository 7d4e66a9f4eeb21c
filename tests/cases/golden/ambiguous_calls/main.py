import random


def left(x): ...


def right(x): ...


turn = left if random.random() < 0.5 else right
turn(1)


class Left:
    def go(self): ...


class Right:
    def go(self): ...


def walk(way: Left | Right):
    way.go()
