class Positive:
    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, instance, owner):
        return instance.__dict__[self.slot]

    def __set__(self, instance, value):
        instance.__dict__[self.slot] = value


class Item:
    price = Positive()


def use(item):
    item.price = 3
    return item.price


use(Item())
