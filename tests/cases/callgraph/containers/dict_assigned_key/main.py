def red():
    return 1


def blue():
    return 2


table = {}
table["red"] = red
table["blue"] = blue
table["blue"]()
