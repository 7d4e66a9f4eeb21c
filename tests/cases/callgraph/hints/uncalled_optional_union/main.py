from typing import Optional, Union


class A:
    def go(self):
        return 1


class B:
    def go(self):
        return 2


def one(a: Optional[A]):
    if a is not None:
        a.go()


def both(x: Union[A, B]):
    x.go()


def pipe(x: "A | None"):
    if x:
        x.go()
