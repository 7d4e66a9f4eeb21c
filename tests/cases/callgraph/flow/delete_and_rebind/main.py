def f():
    return 1


g = f
del f


def f():
    return 2


g()
f()
