from shop.paths.limits import twice
from shop.paths.steps import far


def test_twice():
    assert twice()


def test_far():
    assert far(1)


def expected():
    return far(2)
