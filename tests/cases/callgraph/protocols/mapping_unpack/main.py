class Options:
    def keys(self):
        return ["a"]

    def __getitem__(self, key):
        return self.find(key)

    def find(self, key):
        return 1


def target(a):
    return a


def use(options):
    target(**options)
    return {**options}


use(Options())
