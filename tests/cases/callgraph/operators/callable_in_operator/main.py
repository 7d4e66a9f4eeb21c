class Pipe:
    def __init__(self, function):
        self.function = function

    def __or__(self, other):
        return Pipe(lambda x: other.function(self.function(x)))

    def __ror__(self, value):
        return self.function(value)

    def __rshift__(self, callback):
        return callback(self)


def inc(x):
    return x + 1


def dbl(x):
    return x * 2


def finish(pipe):
    return pipe


both = Pipe(inc) | Pipe(dbl)
3 | both
both >> finish
