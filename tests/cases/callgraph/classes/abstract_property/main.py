from abc import ABC, abstractmethod


class Shape(ABC):
    @property
    @abstractmethod
    def sides(self): ...

    @classmethod
    @abstractmethod
    def unit(cls): ...

    def describe(self):
        return self.sides * self.unit()


class Square(Shape):
    @property
    def sides(self):
        return self.count()

    def count(self):
        return 4

    @classmethod
    def unit(cls):
        return 1


Square().describe()
