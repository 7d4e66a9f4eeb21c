from runner import run


def work(n):
    return n


def start():
    return run(lambda: work(1), lambda: work(2))


start()
