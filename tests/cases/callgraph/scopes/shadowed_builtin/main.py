def len(items):
    return count(items)


def count(items):
    return 1


len([1, 2])
sum([1, 2])
