from domain import OrderRepository


class Checkout:
    def __init__(self, repo: OrderRepository):
        self.repo = repo

    def run(self, key: str, price: int) -> int:
        order = self.repo.get(key).add(price)
        self.repo.save(order)
        return order.total
