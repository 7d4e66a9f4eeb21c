from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Line:
    price: int

    def total(self) -> int:
        return self.price


@dataclass
class Order:
    lines: list[Line] = field(default_factory=list)

    def add(self, price: int) -> Order:
        self.lines.append(Line(price))
        return self

    @property
    def total(self) -> int:
        return sum(line.total() for line in self.lines)
