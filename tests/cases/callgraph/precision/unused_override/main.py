class Base:
    def run(self):
        return self.step()

    def step(self):
        return 0


class Used(Base):
    def step(self):
        return 1


class Unused(Base):
    def step(self):
        return 2


Used().run()
