class Account:
    @property
    def balance(self):
        return read()

    @balance.setter
    def balance(self, value):
        write(value)

    @balance.deleter
    def balance(self):
        erase()


def read():
    return 1


def write(value):
    return value


def erase():
    return None


def use(account):
    account.balance = 3
    found = account.balance
    del account.balance
    return found


use(Account())
