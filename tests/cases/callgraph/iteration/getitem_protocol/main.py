class Squares:
    def __getitem__(self, i):
        if i > 3:
            raise IndexError(i)
        return i * i


def total():
    return sum(Squares())


def loop():
    for square in Squares():
        print(square)


total()
loop()
