class Bag:
    def __init__(self):
        self.items = [1]

    def __len__(self):
        return len(self.items)


class Flag:
    def __bool__(self):
        return False


def tests(bag, flag):
    if bag:
        pass
    while flag:
        pass
    return not bag, flag or bag


def words(bag, flag):
    assert bag
    return [1 for _ in "a" if flag]


tests(Bag(), Flag())
words(Bag(), Flag())
