def f():
    return 1


def user():
    a = b = f
    a()
    return b


user()()
