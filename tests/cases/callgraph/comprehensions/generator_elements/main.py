def f():
    return 1


def make(count):
    return (f for _ in [count])


for action in make(1):
    action()
