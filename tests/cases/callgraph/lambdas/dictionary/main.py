def plus():
    return 1


def minus():
    return 2


table = {"+": lambda: plus(), "-": lambda: minus()}
table["-"]()
