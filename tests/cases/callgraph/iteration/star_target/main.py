def a():
    return 1


def b():
    return 2


def c():
    return 3


first, *middle, last = [a, b, b, c]
first()
for function in middle:
    function()
last()
head, *_ = (c, a)
head()
