def more(n):
    return n < 2


def step(n):
    return n + 1


def done():
    return None


def run():
    n = 0
    while more(n):
        n = step(n)
    else:
        done()


run()
