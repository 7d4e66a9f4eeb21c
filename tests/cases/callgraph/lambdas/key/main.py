def weight(item):
    return item


def order(items):
    return sorted(items, key=lambda item: weight(item))


order([2, 1])
