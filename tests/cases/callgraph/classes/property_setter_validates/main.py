class Account:
    def __init__(self, owner):
        self.owner = owner

    @property
    def owner(self):
        return self._owner

    @owner.setter
    def owner(self, value):
        self._check(value)
        self._owner = value

    @owner.deleter
    def owner(self):
        self._log()

    def _check(self, value):
        return bool(value)

    def _log(self):
        return None


account = Account("a")
account.owner = "b"
account.owner
del account.owner
