def a():
    return 1


def b():
    return 2


def c():
    return 3


base = {"x": {"f": a}}
extra = {"y": {"f": b}}
merged = {**base, **extra}
merged["x"]["f"]()
merged["y"]["f"]()
both = base | {"z": {"f": c}}
both["z"]["f"]()
