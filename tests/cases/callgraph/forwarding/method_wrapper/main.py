import functools


def checked(method):
    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        self.check()
        return method(self, *args, **kwargs)

    return wrapper


class Knife:
    def clean(self): ...


class Apple:
    def check(self): ...

    def cut(self): ...

    @checked
    def peel(self, knife):
        self.cut()
        knife.clean()


class Brick:
    def check(self): ...

    @checked
    def peel(self, mortar=None):
        return mortar


def kitchen():
    Apple().peel(Knife())


def site():
    Brick().peel(mortar=3)


kitchen()
site()
