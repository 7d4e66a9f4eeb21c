class Fast:
    def route(self, a, b):
        return [a, b]


class Scenic:
    def route(self, a, b):
        return self.detour([a, b])

    def detour(self, path):
        return path


class Navigator:
    def __init__(self, strategy):
        self._strategy = strategy

    def use(self, strategy):
        self._strategy = strategy
        return self

    def go(self, a, b):
        return self._strategy.route(a, b)


nav = Navigator(Fast())
nav.go(1, 2)
nav.use(Scenic()).go(1, 2)
