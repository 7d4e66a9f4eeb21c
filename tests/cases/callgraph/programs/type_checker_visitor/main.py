class Module:
    def __init__(self, *body):
        self.body = body


class Name:
    pass


class Checker:
    def check(self, node):
        kind = node.__class__.__name__
        return getattr(self, f"check_{kind}")(node)

    def check_Module(self, node):
        for child in node.body:
            self.check(child)

    def check_Name(self, node):
        return 1


Checker().check(Module(Name()))
