class Leaf:
    def accept(self, v):
        return v.leaf(self)


class Pair:
    def __init__(self, left, right):
        self.left = left
        self.right = right

    def accept(self, v):
        return v.pair(self)


class Count:
    def leaf(self, node):
        return 1

    def pair(self, node):
        return node.left.accept(self) + node.right.accept(self)


class Show:
    def leaf(self, node):
        return "."

    def pair(self, node):
        return "(" + node.left.accept(self) + node.right.accept(self) + ")"


tree = Pair(Leaf(), Pair(Leaf(), Leaf()))
tree.accept(Count())
print(tree.accept(Show()))
