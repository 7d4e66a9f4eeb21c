import itertools


def f():
    return 1


def g():
    return 2


def h():
    return 3


def run():
    for function in itertools.chain([f], (g,)):
        function()
    for function in itertools.islice([h, h], 1):
        function()


run()
