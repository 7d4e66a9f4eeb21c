class Money:
    def __init__(self, amount):
        self.amount = amount

    def __format__(self, spec):
        return self._text(spec)

    def _text(self, spec):
        return spec

    def __str__(self):
        return "m"

    def __repr__(self):
        return "Money"


def show(money):
    return f"{money:>3} {money!r} {money!s}"


def old(money):
    return "%s %r" % (money, money)


def called(money):
    return format(money, "x") + str(money) + "{:d}".format(money)


def logs(money):
    print(money)


money = Money(1)
show(money)
old(money)
called(money)
logs(money)
