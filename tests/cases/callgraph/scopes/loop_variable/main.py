def f():
    return 1


for action in (f,):
    pass
action()
