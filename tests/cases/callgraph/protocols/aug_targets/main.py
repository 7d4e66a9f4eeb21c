class Sum:
    def __init__(self, n=0):
        self.n = n

    def __iadd__(self, other):
        self.n += other
        return self

    def __add__(self, other):
        return Sum(self.n + other)


class Ledger:
    def __init__(self):
        self.total = Sum()
        self.parts = {"a": Sum()}

    def book(self, n):
        self.total += n
        self.parts["a"] += n
        return self.total + 1


Ledger().book(3)
