import types


def greet(self):
    return self.name()


class Person:
    def name(self):
        return "p"


p = Person()
bound = types.MethodType(greet, p)
bound()
p.greet = greet.__get__(p)
p.greet()
