class Context:
    def __init__(self):
        self.errors = []

    def error(self, text):
        self.errors.append(text)


class Pass:
    def __init__(self, context):
        self.context = context

    def __call__(self, tree):
        for node in tree.walk():
            self.visit(node)
        return tree

    def visit(self, node):
        return None


class Fold(Pass):
    def visit(self, node):
        node.fold()


class Check(Pass):
    def visit(self, node):
        if not node.children:
            self.context.error("empty")


class Node:
    def __init__(self, *children):
        self.children = children

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def fold(self):
        return self


PASSES = [Fold, Check]


def compile(tree):
    context = Context()
    for each in PASSES:
        tree = each(context)(tree)
    return tree


compile(Node(Node()))
