class Shape:
    side = 1

    def area(self):
        return 0
