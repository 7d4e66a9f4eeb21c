class Base:
    def run(self):
        print("base")


class Left(Base):
    def run(self):
        super().run()


class Right(Base):
    def run(self):
        super(Right, self).run()


class Both(Left, Right):
    def run(self):
        super().run()


Both().run()
