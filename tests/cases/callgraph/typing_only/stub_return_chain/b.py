from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a import A


class B:
    def __init__(self, a: A) -> None:
        self._a = a

    def owner(self) -> A:
        return self._a
