class A:
    def run(self):
        return 1


class B:
    def run(self):
        return 2


def use(x):
    if isinstance(x, A):
        return x.run()
    return other(x)


def other(x):
    return x.run()


use(A())
use(B())
