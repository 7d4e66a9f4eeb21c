class Version:
    def __init__(self, number):
        self.number = number

    def __lt__(self, other):
        return self.number < other.number

    def __eq__(self, other):
        return self.number == other.number


def older(a, b):
    return a < b


def same(a, b):
    return a == b


older(Version(1), Version(2))
same(Version(1), Version(1))
