class Handler:
    def __init__(self, successor=None):
        self.successor = successor

    def handle(self, n):
        if self.can(n):
            return self.do(n)
        if self.successor is not None:
            return self.successor.handle(n)
        return None

    def can(self, n):
        return False


class Small(Handler):
    def can(self, n):
        return n < 10

    def do(self, n):
        return "small"


class Big(Handler):
    def can(self, n):
        return n >= 10

    def do(self, n):
        return "big"


chain = Small(Big())
chain.handle(3)
chain.handle(30)
