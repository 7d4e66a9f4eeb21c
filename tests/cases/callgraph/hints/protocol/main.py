from typing import Protocol


class Drawable(Protocol):
    def draw(self) -> None: ...


def paint(shape: Drawable):
    shape.draw()
