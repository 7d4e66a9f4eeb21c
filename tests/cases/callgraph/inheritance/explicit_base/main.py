class Base:
    def __init__(self):
        self.ready = True

    def run(self):
        return 1


class Child(Base):
    def __init__(self):
        Base.__init__(self)

    def run(self):
        return Base.run(self)


Child().run()
