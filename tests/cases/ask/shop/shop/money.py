"""Prices."""

import json

__all__ = ["Price", "TAX"]

TAX = 0.2


class Price:
    """An amount of money.

    <script>alert("not markup")</script>
    """

    currency: str = "EUR"

    def __init__(self, amount: float, *, currency: str = "EUR") -> None:
        self.amount = amount
        self.currency = currency

    def with_tax(self, rate: float = TAX) -> "Price":
        """The price with tax on it."""
        return Price(self.amount * (1 + rate))

    def dump(self) -> str:
        return json.dumps({"amount": self.amount})


class Discount(Price):
    """A price that is subtracted."""

    def dump(self) -> str:
        return "-" + super().dump()
