def f():
    return 1


first = lambda: f()
second = lambda: 2
second()
first()
