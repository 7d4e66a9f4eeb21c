from collections.abc import Mapping


class Env(Mapping):
    def __init__(self, data):
        self._data = data

    def __getitem__(self, key):
        return self._data[key]

    def __iter__(self):
        return iter(self._data)

    def __len__(self):
        return len(self._data)


def use(env):
    return env.get("a"), len(env), [k for k in env]


use(Env({"a": 1}))
