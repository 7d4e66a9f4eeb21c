from collections.abc import Iterable, Mapping, Sequence


class P:
    def go(self):
        return 1


class Q:
    def go(self):
        return 2


def pair(x: tuple[P, Q]):
    a, b = x
    a.go()


def second(x: tuple[P, Q]):
    return x[1].go()


def many(x: tuple[Q, ...], y: Sequence[P]):
    for each in x:
        each.go()
    y[0].go()


def deep(x: Mapping[str, Sequence[tuple[int, P]]]):
    for group in x.values():
        for _, each in group:
            each.go()


def lazily(x: Iterable[P]):
    return [each.go() for each in x]
