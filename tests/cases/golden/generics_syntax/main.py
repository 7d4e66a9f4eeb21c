type Pair[T] = tuple[T, T]


def first[T: int](items: list[T]) -> T:
    return items[0]


class Stack[T, *Ts, **P]:
    def push(self, item: T) -> None: ...
