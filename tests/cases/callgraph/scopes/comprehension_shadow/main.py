def f():
    return 1


def g():
    return 2


x = f
[x() for x in (g,)]
x()
y = [g]
{y() for y in y}
