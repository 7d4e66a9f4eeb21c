from dataclasses import dataclass


@dataclass
class Order:
    count: int

    def __post_init__(self):
        self.check()

    def check(self):
        return self.count > 0


Order(1).check()
