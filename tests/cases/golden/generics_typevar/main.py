from typing import Generic, ParamSpec, TypeAlias, TypeVar

T = TypeVar("T", bound="Shape")
P = ParamSpec("P")
Pair: TypeAlias = "tuple[T, T]"


class Shape: ...


class Stack(Generic[T]):
    def __init__(self, items: list[T]) -> None:
        self.items = items

    def pop(self) -> T:
        return self.items.pop()


Stack[Shape]([]).pop()
