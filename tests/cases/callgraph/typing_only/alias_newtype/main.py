from typing import TypeAlias, TypeVar, Union


class A:
    def go(self):
        return 1


class B:
    def go(self):
        return 2


Either: TypeAlias = Union[A, B]
T = TypeVar("T", bound=A)
Many = list[A]


def one(x: Either):
    x.go()


def two(x: T) -> T:
    x.go()
    return x


def three(xs: Many):
    for x in xs:
        x.go()
