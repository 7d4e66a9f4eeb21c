import core

Parent = core.Base


class Child(Parent):
    def start(self):
        return self.boot()


Child().start()
