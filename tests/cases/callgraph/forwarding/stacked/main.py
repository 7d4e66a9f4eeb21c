class Apple:
    def peel(self): ...


def logged(function):
    def log(*args, **kwargs):
        return function(*args, **kwargs)

    return log


def timed(function):
    def time(*args, **kwargs):
        return function(*args, **kwargs)

    return time


@logged
@timed
def eat(fruit):
    fruit.peel()


@timed
def drop(count): ...


def kitchen():
    eat(Apple())


def floor():
    drop(3)


kitchen()
floor()
