class Source:
    def __init__(self):
        self.left = 2

    def read(self):
        self.left -= 1
        return self.left


def drain(source):
    return [n for n in iter(source.read, 0)]


drain(Source())
