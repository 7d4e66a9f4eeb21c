class Circle:
    def area(self):
        return 3


class Square:
    def area(self):
        return 4


def total(shapes):
    return sum(shape.area() for shape in shapes)


total([Circle(), Square()])
