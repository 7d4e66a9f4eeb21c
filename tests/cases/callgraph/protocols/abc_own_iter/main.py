from collections.abc import MutableSequence


class Items(MutableSequence):
    def __init__(self):
        self._items = []

    def __getitem__(self, i):
        return self._items[i]

    def __setitem__(self, i, value):
        self._items[i] = value

    def __delitem__(self, i):
        del self._items[i]

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def insert(self, i, value):
        self._items.insert(i, value)


class Thing:
    def use(self):
        return 1


def work(items):
    items.insert(0, Thing())
    for item in items:
        item.use()
    return len(items), list(items), [x for x in items]


work(Items())
