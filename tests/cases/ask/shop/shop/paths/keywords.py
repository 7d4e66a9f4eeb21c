"""Keywords of calls, and calls that do not name what they run."""

from __future__ import annotations

from dataclasses import dataclass


def pack(size, *, label="none", **more):
    return size, label, more


def send():
    pack(1, label="a", color="red")
    pack(size=2, label=str(3))


class Scale:
    def __add__(self, other):
        return self


def weigh():
    scale = Scale()
    scale + 1
    other = pack
    other(3)


@dataclass
class Crate:
    width: int
    height: int = 1

    def area(self):
        return self.width * self.height


def stack():
    crate = Crate(2, height=3)
    return crate.area()
