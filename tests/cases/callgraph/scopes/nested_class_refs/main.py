class Tree:
    class Node:
        def __init__(self, tree):
            self.tree = tree

        def delete(self):
            self.tree.remove(self)

    def add(self):
        return self.Node(self)

    def add_static(self):
        return Tree.Node(self)

    def remove(self, node):
        return node


tree = Tree()
tree.add().delete()
tree.add_static().delete()
