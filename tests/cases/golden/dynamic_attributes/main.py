class Proxy:
    def __init__(self, target):
        self.target = target

    def __getattr__(self, name):
        return getattr(self.target, name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


Proxy([]).append(1)
