from typing import Protocol, Iterable


class Sized(Protocol):
    def size(self) -> int: ...


class Box:
    def size(self) -> int:
        return 1


class Bag:
    def size(self) -> int:
        return 2


def total(things: Iterable[Sized]) -> int:
    return sum(thing.size() for thing in things)


total([Box(), Bag()])
