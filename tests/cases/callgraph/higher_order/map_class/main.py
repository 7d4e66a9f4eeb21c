class Point:
    def __init__(self, x):
        self.x = x

    def move(self):
        return self.x


for point in map(Point, [1, 2]):
    point.move()
