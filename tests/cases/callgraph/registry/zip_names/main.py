def add(a, b):
    return a + b


def sub(a, b):
    return a - b


OPS = dict(zip("+-", [add, sub]))


def apply(op, a, b):
    return OPS[op](a, b)


apply("+", 1, 2)
apply("-", 1, 2)
