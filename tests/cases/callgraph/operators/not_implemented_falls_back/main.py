class Meter:
    def __init__(self, n):
        self.n = n

    def __radd__(self, other):
        return Meter(other + self.n)

    def __lt__(self, other):
        return self.n < other.n


class Foot:
    def __add__(self, other):
        return NotImplemented


def use():
    sum([Meter(1)], 0)
    Foot() + Meter(3)
    1 + Meter(2)


try:
    use()
except (TypeError, AttributeError):
    pass
