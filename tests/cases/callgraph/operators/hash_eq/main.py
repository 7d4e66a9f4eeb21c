class Key:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name


def use():
    table = {Key("a"): 1}
    return table[Key("a")]


use()
