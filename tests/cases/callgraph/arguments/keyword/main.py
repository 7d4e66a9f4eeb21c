def left():
    return "l"


def right():
    return "r"


def choose(a, b):
    return a()


choose(b=right, a=left)
