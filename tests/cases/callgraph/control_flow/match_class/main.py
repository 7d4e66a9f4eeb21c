class Circle:
    def __init__(self, radius):
        self.radius = radius

    def roll(self):
        return 1


class Square:
    def slide(self):
        return 2


def move(shape):
    match shape:
        case Circle(radius=1) as circle:
            return circle.roll()
        case Square() as square:
            return square.slide()


move(Circle(1))
move(Square())
