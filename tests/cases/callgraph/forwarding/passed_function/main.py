class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


class Worker:
    def __init__(self):
        self.count = 0

    def run(self, function, *args, **kwargs):
        self.count += 1
        if self.count > 10:
            raise RuntimeError("too many")
        try:
            return function(*args, **kwargs)
        finally:
            self.count -= 1


def eat(fruit):
    fruit.peel()
    return fruit


def build(brick):
    brick.peel()
    return brick


def kitchen(worker):
    worker.run(eat, Apple()).peel()


def site(worker):
    worker.run(build, brick=Brick()).peel()


kitchen(Worker())
site(Worker())
