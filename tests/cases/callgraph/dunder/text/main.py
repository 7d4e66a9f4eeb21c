class Name:
    def __str__(self):
        return "n"

    def __repr__(self):
        return "N"


class Price:
    def __format__(self, spec):
        return "p"


def show(name):
    return str(name)


def embed(name):
    return f"{name}"


def debug(name):
    return f"{name!r}" + repr(name)


def cost(price):
    return f"{price:>5}"


show(Name())
embed(Name())
debug(Name())
cost(Price())
