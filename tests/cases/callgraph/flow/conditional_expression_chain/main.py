def a():
    return 1


def b():
    return None


def c():
    return 3


def pick(n):
    function = a if n == 0 else b if n == 1 else c
    return function() or (c and a)()


for n in (0, 1, 2):
    pick(n)
