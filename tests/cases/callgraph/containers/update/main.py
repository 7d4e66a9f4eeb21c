def a():
    return 1


def b():
    return 2


table = {"a": a}
table.update({"b": b})
table["b"]()
