import sys


def quick():
    return 1


def slow():
    return 2


if sys.maxsize > 0:

    def run():
        return quick()
else:

    def run():
        return slow()


run()
