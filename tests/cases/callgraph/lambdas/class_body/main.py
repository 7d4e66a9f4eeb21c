class Circle:
    area = lambda self: self.square() * 3

    def square(self):
        return 1


Circle().area()
