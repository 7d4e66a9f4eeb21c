from abc import ABC, abstractmethod


class Store(ABC):
    @abstractmethod
    def get(self, key): ...

    def fetch(self, key):
        return self.get(key)


class Memory(Store):
    def get(self, key):
        return key


def use(store: Store):
    return store.fetch("k")


use(Memory())
