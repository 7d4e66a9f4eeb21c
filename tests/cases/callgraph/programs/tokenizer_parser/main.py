class Num:
    def __init__(self, n):
        self.n = n

    def eval(self):
        return self.n


class Bin:
    OPS = {"+": lambda a, b: a + b, "*": lambda a, b: a * b}

    def __init__(self, op, left, right):
        self.op, self.left, self.right = op, left, right

    def eval(self):
        return self.OPS[self.op](self.left.eval(), self.right.eval())


class Parser:
    def __init__(self, tokens):
        self.tokens = list(tokens)
        self.pos = 0

    def peek(self):
        return self.tokens[self.pos] if self.pos < len(self.tokens) else None

    def take(self):
        token = self.peek()
        self.pos += 1
        return token

    def expr(self):
        left = self.term()
        while self.peek() == "+":
            left = Bin(self.take(), left, self.term())
        return left

    def term(self):
        left = self.atom()
        while self.peek() == "*":
            left = Bin(self.take(), left, self.atom())
        return left

    def atom(self):
        token = self.take()
        if token == "(":
            inner = self.expr()
            self.take()
            return inner
        return Num(int(token))


def calc(text):
    return Parser(text).expr().eval()


calc("1+2*(3+4)")
