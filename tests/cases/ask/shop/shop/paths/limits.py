"""A variable of another module, and a decorator."""

from shop.paths.values import LIMIT, keep
from shop.paths import values


def marked(function):
    return function


@marked
def twice():
    return keep(LIMIT) + values.LIMIT
