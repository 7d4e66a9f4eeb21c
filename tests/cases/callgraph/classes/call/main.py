class Adder:
    def __init__(self, by):
        self.by = by

    def __call__(self, number):
        return number + self.by


add = Adder(2)
add(3)
