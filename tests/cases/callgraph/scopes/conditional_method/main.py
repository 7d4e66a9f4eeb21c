import sys


def windows():
    return 1


def posix():
    return 2


class Os:
    if sys.platform == "win32":

        def name(self):
            return windows()

    else:

        def name(self):
            return posix()


Os().name()
