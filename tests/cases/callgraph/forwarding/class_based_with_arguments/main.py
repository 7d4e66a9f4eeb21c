class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


class Retry:
    def __init__(self, times):
        self.times = times

    def __call__(self, function):
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper


@Retry(2)
def eat(fruit):
    fruit.peel()


@Retry(1)
def build(brick):
    brick.peel()


def kitchen():
    eat(Apple())


def site():
    build(Brick())


kitchen()
site()
