def now():
    return 0


def stamp(clock=lambda: now()):
    inner = lambda: 1
    inner()
    return clock()


stamp()
