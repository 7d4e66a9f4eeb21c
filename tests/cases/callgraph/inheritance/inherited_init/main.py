class Base:
    def __init__(self):
        self.setup()

    def setup(self):
        return 1


class Child(Base):
    pass


Child()
