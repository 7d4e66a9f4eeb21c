class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def retry(times):
    def decorate(function):
        def wrapper(*args, **kwargs):
            for _ in range(times):
                result = function(*args, **kwargs)
            return result

        return wrapper

    return decorate


@retry(2)
def eat(fruit):
    fruit.peel()


@retry(times=1)
def build(brick):
    brick.peel()


def kitchen():
    eat(Apple())


def site():
    build(brick=Brick())


kitchen()
site()
