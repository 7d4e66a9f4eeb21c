class Money:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Money(self.n + other.n)

    def __radd__(self, other):
        return self

    def show(self):
        return self.n


def total(items):
    return sum(items).show()


def total_from(items):
    return sum(items, Money(0)).show()


total([Money(1), Money(2)])
total_from([Money(1)])
