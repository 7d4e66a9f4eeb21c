from typing import overload


@overload
def load(x: int) -> int: ...
@overload
def load(x: str) -> str: ...
def load(x):
    return convert(x)


def convert(x):
    return x


load(1)
load("a")
