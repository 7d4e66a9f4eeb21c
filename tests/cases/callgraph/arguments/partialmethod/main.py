from functools import partialmethod


class Lamp:
    def set(self, on):
        return self.apply(on)

    def apply(self, on):
        return on

    on = partialmethod(set, True)
    off = partialmethod(set, False)


lamp = Lamp()
lamp.on()
lamp.off()
