from typing import cast


class Node:
    def walk(self):
        return 1


def a(x):
    node = cast(Node, x)
    node.walk()


def b(x):
    assert isinstance(x, Node)
    x.walk()


def c(x):
    if not isinstance(x, Node):
        return None
    return x.walk()


def d(x):
    node = cast("Node", x)
    return node.walk()
