class Positive:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        return 1


class Account:
    __slots__ = ("_balance",)
    balance = Positive()


Account().balance
