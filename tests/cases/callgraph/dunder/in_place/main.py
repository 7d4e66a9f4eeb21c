class Bag:
    def __iadd__(self, other):
        return self

    def __add__(self, other):
        return Bag()


class Sack:
    def __add__(self, other):
        return self


def fill():
    bag = Bag()
    bag += 1
    sack = Sack()
    sack += 1
    return bag, sack


fill()
