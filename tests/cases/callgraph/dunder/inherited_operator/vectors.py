class Vector:
    def __add__(self, other):
        return merge(self, other)


def merge(a, b):
    return a
