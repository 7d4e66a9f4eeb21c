from shapes import Shape


class Square(Shape):
    def area(self):
        return self.side**2


def total(shapes):
    return sum(shape.area() for shape in shapes)


total([Square()])
