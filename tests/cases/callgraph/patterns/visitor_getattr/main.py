class Node:
    def accept(self, visitor):
        return visitor.visit(self)


class Num(Node):
    pass


class Visitor:
    def visit(self, node):
        method = getattr(self, "visit_" + type(node).__name__.lower(), self.generic)
        return method(node)

    def generic(self, node):
        return None


class Unknown(Node):
    pass


Unknown().accept(Visitor())
