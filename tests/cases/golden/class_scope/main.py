x = "module"


class Outer:
    x = "class"
    y = x

    def method(self):
        return x

    class Inner:
        z = x


def make():
    x = "function"

    class Local:
        w = x

    return Local
