class Field:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner):
        return getattr(obj, self.name)

    def __set__(self, obj, value):
        self.validate(value)
        setattr(obj, self.name, value)

    def validate(self, value):
        raise NotImplementedError


class Positive(Field):
    def validate(self, value):
        if value < 0:
            raise ValueError(value)


class Item:
    price = Positive()

    def __init__(self, price):
        self.price = price

    def total(self):
        return self.price * 2


Item(3).total()
