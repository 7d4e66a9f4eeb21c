from abc import ABC
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Loader(ABC):
    def run(self):
        return self.load()


class Csv(Loader):
    def load(self):
        return 1


class Box(Generic[T]):
    def open(self):
        return self.unlock()


class Shape(Protocol):
    def twice(self):
        return self.area()


Csv().run()
