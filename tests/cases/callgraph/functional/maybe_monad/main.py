class Maybe:
    def __init__(self, value):
        self.value = value

    def bind(self, function):
        if self.value is None:
            return self
        return function(self.value)

    @classmethod
    def unit(cls, value):
        return cls(value)


def half(n):
    return Maybe.unit(n // 2)


def dec(n):
    return Maybe(n - 1)


Maybe.unit(8).bind(half).bind(dec).bind(lambda n: half(n))
