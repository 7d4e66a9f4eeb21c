def a():
    return 1


def b():
    return 2


def run_all(*tasks):
    for task in tasks:
        task()


run_all(a, b)
