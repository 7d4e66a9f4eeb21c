from abc import ABC, abstractmethod


class Tree(ABC):
    @abstractmethod
    def __iter__(self): ...

    def names(self):
        return [node.name() for node in self]


class Leaf(Tree):
    def __iter__(self):
        yield self

    def name(self):
        return "leaf"


class Pair(Tree):
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __iter__(self):
        yield from self.a
        yield from self.b


Pair(Leaf(), Leaf()).names()
