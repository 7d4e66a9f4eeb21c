import later


def start():
    return finish() + later.first()


def finish():
    return 1


start()
