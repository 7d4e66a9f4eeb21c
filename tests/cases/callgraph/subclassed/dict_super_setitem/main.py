class Low(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def raw(self, key, value):
        dict.__setitem__(self, key, value)


class Item:
    def use(self):
        return 1


def work():
    table = Low()
    table["A"] = Item()
    table.raw("b", Item())
    table["a"].use()
    return table["b"].use()


work()
