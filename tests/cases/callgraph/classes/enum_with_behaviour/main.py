from enum import Enum


def plus(a, b):
    return a + b


def minus(a, b):
    return a - b


class Op(Enum):
    PLUS = ("+", plus)
    MINUS = ("-", minus)

    def __init__(self, sign, function):
        self.sign = sign
        self.function = function

    def __call__(self, a, b):
        return self.function(a, b)

    @classmethod
    def by_sign(cls, sign):
        for op in cls:
            if op.sign == sign:
                return op
        return None

    @property
    def label(self):
        return self.sign


Op.PLUS(1, 2)
Op.by_sign("-")(1, 2)
Op["PLUS"].label
