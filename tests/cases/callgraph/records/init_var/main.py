from dataclasses import InitVar, dataclass, field


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


@dataclass
class Box:
    fruit: Apple
    stone: InitVar[Brick]
    count: InitVar[int] = 1
    heavy: object = field(init=False)

    def __post_init__(self, stone, count):
        stone.peel()
        self.heavy = stone


def fill():
    box = Box(Apple(), Brick(), count=3)
    box.fruit.peel()
    box.heavy.peel()


fill()
