class Knife:
    def clean(self): ...


class Stone:
    def clean(self): ...


class Apple:
    def __init__(self, knife):
        knife.clean()

    def peel(self): ...


class Brick:
    def __init__(self, stone):
        stone.clean()

    def peel(self): ...


def creator(cls):
    def _create(*args, **kwargs):
        return cls(*args, **kwargs)

    return _create


apple = creator(Apple)
brick = creator(Brick)


def kitchen():
    apple(Knife()).peel()


def site():
    brick(stone=Stone()).peel()


kitchen()
site()
