from typing import Generic, TypeVar

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> None:
        self.items.append(item)

    def pop(self) -> T:
        return self.items.pop()


class Plate:
    def wash(self):
        return 1


def clean() -> None:
    stack: Stack[Plate] = Stack()
    stack.push(Plate())
    stack.pop().wash()


clean()
