class Meters(int):
    def feet(self):
        return self * 3


class Name(str):
    def initials(self):
        return [part[0] for part in self.split()]


Meters(3).feet()
Name("a b").initials()
