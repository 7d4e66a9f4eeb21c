def len(items):
    return 0


first = len([1])
del len
second = len([1])
