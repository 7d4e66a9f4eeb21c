class Inner:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return "I"


class Outer:
    def __init__(self):
        self.inner = Inner(1)

    def __repr__(self):
        return f"Outer({self.inner!r})"


repr(Outer())
str(Outer())
