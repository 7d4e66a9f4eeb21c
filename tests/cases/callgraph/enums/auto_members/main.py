import enum


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()

    def next(self):
        return Level.HIGH


TABLE = {"a": Level.LOW}


def climb(name):
    return TABLE[name].next()


climb("a")
Level.LOW.next().next()
