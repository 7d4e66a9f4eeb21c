class Outer:
    class Inner:
        def make(self):
            return Outer.Inner()

    inner = Inner()


def factory():
    class Local(Outer.Inner):
        pass

    return Local()


factory().make()
