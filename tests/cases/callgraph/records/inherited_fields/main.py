from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar


class Apple:
    def use(self): ...


class Brick:
    def use(self): ...


class Cord:
    def use(self): ...


class Drum:
    def use(self): ...


def make_drum():
    return Drum()


@dataclass
class Base:
    kind: ClassVar[str] = "base"
    first: object
    made: object = field(init=False, default_factory=make_drum)
    second: object = None


class Plain(Base):
    extra: int = 1


@dataclass
class Child(Plain):
    third: object = None
    _: KW_ONLY
    fourth: object = field(default_factory=make_drum)


@dataclass(kw_only=True)
class Other(Base):
    fifth: object
    first: object


def first(item):
    item.first.use()


def second(item):
    item.second.use()


def third(item):
    item.third.use()


def fourth(item):
    item.fourth.use()


def made(item):
    item.made.use()


def fifth(item):
    item.fifth.use()


def plain():
    first(Plain(Apple()))


def child():
    item = Child(Apple(), Brick(), Cord(), fourth=Drum())
    first(item)
    second(item)
    third(item)
    fourth(item)
    made(item)


def other():
    item = Other(Brick(), fifth=Cord(), first=Apple())
    item.second.use()
    fifth(item)


plain()
child()
other()
