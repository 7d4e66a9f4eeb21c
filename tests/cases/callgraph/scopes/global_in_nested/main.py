def act():
    return 1


handler = act


def other():
    return 2


def outer():
    handler = other

    def inner():
        global handler
        return handler()

    handler()
    return inner()


outer()
