from typing import overload

@overload
def fast(n: int) -> int: ...
@overload
def fast(n: str) -> str: ...

class Engine:
    size: int
    def start(self) -> None: ...
