import msgspec
from msgspec import Struct


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def new_brick():
    return Brick()


class Base(Struct):
    fruit: object
    stone: object = msgspec.field(default_factory=new_brick)

    def __post_init__(self):
        self.fruit.peel()


class Child(Base, kw_only=True):
    other: object


def base():
    Base(Apple()).stone.peel()


def child():
    Child(Apple(), Brick(), other=Brick()).other.peel()


base()
child()
