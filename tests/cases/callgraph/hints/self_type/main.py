from __future__ import annotations

from typing import Self


class Path:
    def up(self) -> Self:
        return self._step()

    def _step(self):
        return self

    def down(self) -> Path:
        return self


def move(path: Path):
    path.up().down().up()
