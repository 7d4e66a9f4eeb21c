class Base:
    def go(self):
        return self.part.run()


class X:
    def run(self):
        return 1


class Y:
    def run(self):
        return 2


class A(Base):
    def __init__(self):
        self.part = X()

    def own(self):
        return self.part.run()


class B(Base):
    def __init__(self):
        self.part = Y()

    def own(self):
        return self.part.run()


A().own()
B().own()
A().go()
B().go()
