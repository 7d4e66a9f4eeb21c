from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model import Order


def ship(order: Order):
    return order.pack()
