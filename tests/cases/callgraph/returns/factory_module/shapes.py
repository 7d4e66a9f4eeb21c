class Circle:
    def draw(self):
        return 1


class Square:
    def draw(self):
        return 2
