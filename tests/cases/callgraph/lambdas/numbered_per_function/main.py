def one():
    return 1


def two():
    return 2


def a():
    actions = [lambda: one() for _ in (1,)]
    other = lambda: two()
    actions[0]()
    return other()


def b():
    return (lambda: two())()


a()
b()
