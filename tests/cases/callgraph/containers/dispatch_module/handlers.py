def on_a():
    return 1


def on_b():
    return 2
