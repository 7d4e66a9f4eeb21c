class Point:
    def __init__(self, x):
        self.x = x

    @classmethod
    def origin(cls):
        return cls(0)

    def norm(self):
        return abs(self.x)


Point.origin().norm()
