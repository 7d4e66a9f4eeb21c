import functools


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@logged
def eat(fruit, times=1):
    fruit.peel()


@logged
def build(brick):
    brick.peel()


def kitchen():
    eat(Apple(), times=2)


def site():
    build(brick=Brick())


kitchen()
site()
