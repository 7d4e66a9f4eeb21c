class Spy:
    def __init__(self):
        self.seen = 1

    def __getattribute__(self, name):
        note(name)
        return object.__getattribute__(self, name)

    def act(self):
        return 1


def note(name):
    return name


spy = Spy()
spy.act()
