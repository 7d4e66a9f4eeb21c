from dataclasses import dataclass, field


class Cart:
    def total(self):
        return 0


def new_cart():
    return Cart()


@dataclass
class Customer:
    cart: Cart = field(default_factory=new_cart)


customer = Customer()
customer.cart.total()
