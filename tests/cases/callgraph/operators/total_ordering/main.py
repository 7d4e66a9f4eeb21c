from functools import total_ordering


@total_ordering
class Version:
    def __init__(self, text):
        self.parts = self._split(text)

    def _split(self, text):
        return text.split(".")

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts


def newest(versions):
    best = versions[0]
    for version in versions:
        if version >= best:
            best = version
    return best


newest([Version("1.0"), Version("1.2")])
