class Deposited:
    def __init__(self, n):
        self.n = n


class Withdrawn:
    def __init__(self, n):
        self.n = n


class Account:
    def __init__(self):
        self.balance = 0
        self.changes = []

    def deposit(self, n):
        self._record(Deposited(n))

    def withdraw(self, n):
        if n > self.balance:
            raise InsufficientFunds(n)
        self._record(Withdrawn(n))

    def _record(self, event):
        self._apply(event)
        self.changes.append(event)

    def _apply(self, event):
        if isinstance(event, Deposited):
            self._on_deposited(event)
        else:
            self._on_withdrawn(event)

    def _on_deposited(self, event):
        self.balance += event.n

    def _on_withdrawn(self, event):
        self.balance -= event.n

    @classmethod
    def replay(cls, events):
        account = cls()
        for event in events:
            account._apply(event)
        return account


class InsufficientFunds(Exception):
    def __init__(self, n):
        self.n = n

    def shortage(self):
        return self.n


account = Account()
account.deposit(3)
account.withdraw(1)
try:
    account.withdraw(10)
except InsufficientFunds as error:
    error.shortage()
Account.replay(account.changes).deposit(1)
