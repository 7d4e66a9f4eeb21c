def add(a, b):
    return a + b


def mul(a, b):
    return a * b


TABLE = {
    "add": lambda a: lambda b: add(a, b),
    "mul": lambda a: lambda b: mul(a, b),
}

TABLE["add"](1)(2)
for make in TABLE.values():
    make(2)(3)
