from collections.abc import MutableMapping


class Options(MutableMapping):
    def __init__(self):
        self._d = {}

    def __getitem__(self, key):
        return self._d[key]

    def __setitem__(self, key, value):
        self._d[key] = value

    def __delitem__(self, key):
        del self._d[key]

    def __iter__(self):
        return iter(self._d)

    def __len__(self):
        return len(self._d)


def read(options):
    return options.get("a", 1)


def write(options):
    options.update(b=2)


def drop(options):
    return options.pop("b")


o = Options()
read(o)
write(o)
drop(o)
