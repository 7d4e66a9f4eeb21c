class Graphic:
    def draw(self):
        pass


class Dot(Graphic):
    def draw(self):
        return "."


class Group(Graphic):
    def __init__(self):
        self.children = []

    def add(self, *graphics):
        self.children.extend(graphics)
        return self

    def draw(self):
        return [child.draw() for child in self.children]


Group().add(Dot(), Group().add(Dot())).draw()
