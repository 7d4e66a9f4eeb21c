from . import plugin


@plugin
class Alpha:
    def run(self):
        return self.name()

    def name(self):
        return "alpha"
