from dataclasses import dataclass, field


class Cart:
    def total(self): ...


class Basket:
    def weigh(self): ...


def new_cart():
    return Cart()


@dataclass
class Customer:
    name: str
    cart: object = field(default_factory=new_cart)


def without():
    Customer("a").cart.total()


def passed():
    Customer("b", cart=Basket()).cart.weigh()


def both(customer=Customer("c", Basket())):
    return customer


without()
passed()
both()
