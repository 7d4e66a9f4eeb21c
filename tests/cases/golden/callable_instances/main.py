class Adder:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x + self.n


add = Adder(1)
add(2)
Adder(3)(4)
