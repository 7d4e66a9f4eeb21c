def a():
    return 1


def b():
    return 2


def c():
    return 3


def d():
    return 4


def flow():
    one = [a]
    two = one.copy()
    two.insert(0, b)
    three = two[:]
    three.extend((c,))
    four = list(reversed(three + [d]))
    for function in four:
        function()


flow()
