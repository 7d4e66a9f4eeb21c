import attr
from attr import Factory
from attrs import define, field, frozen


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def new_brick():
    return Brick()


@attr.s
class Old:
    fruit = attr.ib()
    _stone = attr.ib(default=Factory(new_brick))
    note: str = "no field"

    def __attrs_post_init__(self):
        self._stone.peel()


@define
class New:
    fruit: object
    stone: object = field(factory=new_brick, kw_only=True)


@frozen
class Wide(New):
    other: object = None


@attr.s(auto_attribs=True)
class Annotated:
    fruit: object
    count: int = attr.ib(default=1, init=False)
    stone: object = None


def old():
    Old(Apple(), stone=Brick()).fruit.peel()


def old_default():
    Old(Apple())


def new():
    New(Apple()).stone.peel()


def wide():
    Wide(Apple(), Brick()).other.peel()


def annotated():
    Annotated(Apple(), Brick()).stone.peel()


old()
old_default()
new()
wide()
annotated()
