from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)

    def moved(self, by: int) -> "Point":
        return Point(self.x + by, y=self.y)


Point(1).moved(2)
