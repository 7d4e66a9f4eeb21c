class Base:
    def copy(self):
        return type(self)()

    def me(self):
        return self


class A(Base):
    def a(self):
        return 1


class B(Base):
    def b(self):
        return 2


def use_a():
    A().copy().a()
    A().me().a()


def use_b():
    B().copy().b()
    B().me().b()


use_a()
use_b()
