from shop.cart import sell


def test_sell():
    assert sell([1.0])


class TestSell:
    def test_nothing(self):
        assert sell([])
