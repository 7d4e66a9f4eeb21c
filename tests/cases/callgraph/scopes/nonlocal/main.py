def first():
    return 1


def second():
    return 2


def outer():
    action = first

    def change():
        nonlocal action
        action = second

    action()
    change()
    return action()


outer()
