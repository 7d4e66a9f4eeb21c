class Leaf:
    def names(self):
        yield self.name()

    def name(self):
        return "leaf"


class Tree:
    def __init__(self, *kids):
        self.kids = kids

    def names(self):
        for kid in self.kids:
            yield from kid.names()
        yield self.name()

    def name(self):
        return "tree"


def count():
    yield 1
    return Leaf()


def outer():
    leaf = yield from count()
    yield leaf.name()


list(Tree(Leaf(), Tree()).names())
list(outer())
