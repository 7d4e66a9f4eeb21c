class Num:
    pass


class Add:
    def __init__(self, left, right):
        self.left, self.right = left, right


class Visitor:
    def visit(self, node):
        name = "visit_" + type(node).__name__
        return getattr(self, name, self.generic_visit)(node)

    def generic_visit(self, node):
        raise TypeError(node)


class Evaluator(Visitor):
    def visit_Num(self, node):
        return 1

    def visit_Add(self, node):
        return self.visit(node.left) + self.visit(node.right)


Evaluator().visit(Add(Num(), Num()))
