from domain import Order, OrderRepository


class Memory(OrderRepository):
    def __init__(self) -> None:
        self.orders: dict[str, Order] = {}

    def get(self, key: str) -> Order:
        return self.orders.setdefault(key, Order())

    def save(self, order: Order) -> None:
        self.orders[str(order.total)] = order
