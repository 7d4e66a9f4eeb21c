a = 1

def f():
    return a

b = 'x'; f()
