class Order:
    def pay(self):
        return self.charge()

    def charge(self):
        return 1


class Gift(Order):
    def charge(self):
        return 0


def checkout(order: Order, times: int = 1):
    for _ in range(times):
        order.pay()
