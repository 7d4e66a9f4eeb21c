class Base:
    def run(self):
        return 1


class Child(Base):
    pass


Child().run()
