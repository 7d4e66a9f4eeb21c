def name():
    return "module"


class Person:
    def name(self):
        return "person"

    def greet(self):
        return name()

    shown = name


Person().greet()
Person().shown()
