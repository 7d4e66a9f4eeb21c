class Base:
    def run(self):
        return 1


class Child(Base):
    def run(self):
        return 2


Child().run()
Base().run()
