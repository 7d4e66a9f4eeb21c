class Wallet:
    def pay(self):
        return 1


class Person:
    def __init__(self):
        self.wallet = Wallet()

    def get_wallet(self):
        return self.wallet


Person().get_wallet().pay()
