class Base:
    def setup(self):
        return 0


class Left(Base):
    def setup(self):
        return super().setup()


class Right(Base):
    def setup(self):
        return super().setup()


class Both(Left, Right):
    def setup(self):
        return super().setup()


Both().setup()
Left().setup()
