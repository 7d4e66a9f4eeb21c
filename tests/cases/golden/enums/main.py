from enum import Enum, auto


class Level(Enum):
    LOW = 1
    HIGH = auto()

    def label(self):
        return self.name.lower()


Level.LOW.label()
Level(1)
