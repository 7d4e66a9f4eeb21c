class Base:
    @classmethod
    def create(cls, *args):
        obj = cls()
        obj.init(*args)
        return obj

    def init(self, *args):
        return None


class Child(Base):
    @classmethod
    def create(cls, *args):
        obj = super().create(*args)
        obj.extra()
        return obj

    def extra(self):
        return 1

    def init(self, *args):
        return super().init(*args)


Child.create(1)
