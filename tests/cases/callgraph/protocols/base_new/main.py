class Base:
    pass


class Token(Base):
    def __init__(self):
        self.x = 1

    @classmethod
    def bare(cls):
        self = Base.__new__(cls)
        self.fill()
        return self

    def fill(self):
        return 1

    def clone(self):
        other = self.__class__.__new__(self.__class__)
        other.__dict__.update(self.__dict__)
        return other


Token.bare().fill()
Token().clone().fill()
