class Conf:
    get = lambda self: self.value()
    plain = staticmethod(lambda: 1)

    def value(self):
        return 1


Conf().get()
Conf.get(Conf())
Conf.plain()
