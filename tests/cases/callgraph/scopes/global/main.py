def old():
    return 1


def new():
    return 2


handler = old


def install():
    global handler
    handler = new


def run():
    return handler()


install()
run()
