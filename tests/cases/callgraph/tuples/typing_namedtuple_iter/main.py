from typing import NamedTuple


class A:
    def a(self):
        return 1


class B:
    def b(self):
        return 2


class Pair(NamedTuple):
    left: A
    right: B = B()


def use(pair):
    left, right = pair
    left.a()
    right.b()
    pair[0].a()
    return pair._replace(left=A()).left.a()


use(Pair(A()))
