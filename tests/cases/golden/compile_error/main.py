def f():
    x = 1
    nonlocal y
    return x


return f
