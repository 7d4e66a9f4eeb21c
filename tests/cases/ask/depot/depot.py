"""A second repository, with names that shop has too."""

from shop.cart import Cart


class Price:
    def with_tax(self):
        return self


def total(prices):
    return sum(prices)


def load(path):
    with open(path) as file:
        return Cart(file.read())
