def first():
    return 1


def second():
    return 2


handler = first


def install():
    global handler
    handler = second


def fire():
    return handler()


fire()
install()
fire()
