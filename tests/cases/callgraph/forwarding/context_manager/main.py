from contextlib import contextmanager


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def managed(function):
    @contextmanager
    def wrapper(*args, **kwargs):
        yield function(*args, **kwargs)

    return wrapper


@managed
def pick(fruit):
    fruit.peel()
    return fruit


@managed
def build(brick):
    brick.peel()
    return brick


def kitchen():
    with pick(Apple()) as fruit:
        fruit.peel()


def site():
    with build(brick=Brick()) as brick:
        brick.peel()


kitchen()
site()
