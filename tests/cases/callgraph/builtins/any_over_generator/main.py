def ready(item):
    return item > 1


def check(items):
    return any(ready(item) for item in items)


check([1, 2])
