def name():
    return "a"


def index():
    return 0


def end():
    return 1


def flag():
    return True


text = f"{name()}"
first = [1, 2][index()]
part = [1, 2][0 : end()]
result = 1 if flag() else 2
