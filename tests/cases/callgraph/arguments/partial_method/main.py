from functools import partial


class Canvas:
    def line(self, color, x):
        return self.dot(color, x)

    def dot(self, color, x):
        return color, x


class Pen:
    def __init__(self, canvas, color):
        self.draw = partial(canvas.line, color)

    def write(self):
        return self.draw(3)


red_pen = partial(Pen, color="red")
red_pen(Canvas()).write()
