from typing import Protocol, overload


class Closable(Protocol):
    def close(self) -> None: ...


class File:
    def close(self) -> None: ...


def shut(thing: Closable) -> None:
    thing.close()


shut(File())
