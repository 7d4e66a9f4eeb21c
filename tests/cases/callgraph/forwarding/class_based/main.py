class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


class Logged:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


@Logged
def eat(fruit):
    fruit.peel()
    return fruit


@Logged
def build(brick):
    brick.peel()
    return brick


def kitchen():
    eat(Apple()).peel()


def site():
    build(brick=Brick()).peel()


kitchen()
site()
