from dataclasses import dataclass


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


class Old:
    def __init__(self, brick):
        self.brick = brick


@dataclass
class Fresh(Old):
    fruit: object


@dataclass
class Own:
    fruit: object

    def __init__(self, brick):
        self.fruit = brick


@dataclass(init=False)
class Kept(Old):
    fruit: object = None


class Below(Fresh):
    def show(self):
        self.fruit.peel()


def fresh():
    Fresh(Apple()).fruit.peel()


def own():
    Own(Brick()).fruit.peel()


def kept():
    Kept(Brick()).brick.peel()


def below():
    Below(fruit=Apple()).show()


fresh()
own()
kept()
below()
