class Base:
    @staticmethod
    def norm(x):
        return x

    def run(self, x):
        return self.norm(x)


class Child(Base):
    @staticmethod
    def norm(x):
        return Base.norm(x) + 1

    def both(self, x):
        return super().norm(x) + type(self).norm(x)


Child().run(1)
Child.norm(2)
Child().norm(3)
Child().both(4)
