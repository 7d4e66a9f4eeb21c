class Scale:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, n):
        return n * self.factor


def scaled(numbers):
    return list(map(Scale(2).apply, numbers))


scaled([1])
