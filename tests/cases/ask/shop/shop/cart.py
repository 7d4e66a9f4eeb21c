"""Carts: classes, methods, callbacks, a cycle."""

from __future__ import annotations

import json as j

from shop import money
from shop.money import Price


def total(prices: list[Price]) -> float:
    """The sum of some prices."""
    amount = 0.0
    for price in prices:
        amount += price.amount
    return amount


class Cart:
    """What somebody wants to buy."""

    def __init__(self) -> None:
        self.prices: list[Price] = []

    def add(self, price: Price) -> None:
        self.prices.append(price)

    def total(self) -> float:
        return total(self.prices)

    def checkout(self, pay) -> bool:
        charged = self.total()
        return pay(charged)


def ping(n: int) -> int:
    return pong(n - 1) if n else 0


def pong(n: int) -> int:
    return ping(n)


def sell(amounts: list[float]) -> bool:
    cart = Cart()
    for amount in amounts:
        cart.add(money.Price(amount).with_tax())
    return cart.checkout(print_bill)


def print_bill(amount: float) -> bool:
    print(j.dumps(amount))
    return True


def größe(cart: Cart) -> int:
    return len(cart.prices)
