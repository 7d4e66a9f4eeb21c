from functools import singledispatchmethod


class Printer:
    @singledispatchmethod
    def show(self, value):
        return self.fallback(value)

    @show.register
    def _(self, value: int):
        return self.number(value)

    def fallback(self, value):
        return value

    def number(self, value):
        return value


p = Printer()
p.show(1)
p.show("x")
