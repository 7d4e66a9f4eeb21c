class Tracked:
    def __init__(self):
        self.size = 1

    def __setattr__(self, name, value):
        self._note(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)

    def _note(self, name):
        return name


t = Tracked()
t.size = 2
del t.size
