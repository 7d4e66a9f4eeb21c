import functools


class Logged:
    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner):
        return functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Apple:
    def cut(self): ...

    @Logged
    def peel(self, knife):
        self.cut()
        knife.clean()


class Knife:
    def clean(self): ...

    @Logged
    def sharpen(self, times):
        self.clean()


def kitchen():
    Apple().peel(Knife())


def drawer():
    Knife().sharpen(2)


kitchen()
drawer()
