from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapes import Shape


def area(shape: "Shape") -> float:
    return shape.area()
