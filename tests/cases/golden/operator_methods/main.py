class Vector:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Vector(self.x + other.x)

    def __getitem__(self, index):
        return self.x

    def __len__(self):
        return 1


total = Vector(1) + Vector(2)
total[0], len(total)
