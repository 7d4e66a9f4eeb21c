def a(name):
    return name


def b(name):
    return name


for name, action in {"a": a, "b": b}.items():
    action(name)
