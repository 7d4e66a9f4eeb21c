def area():
    return 1


def _draw():
    return 2
