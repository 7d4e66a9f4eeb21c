limit: int = 10
name: "str"
plain: float = 1.5


class Point:
    x: int
    y: int = limit

    def __init__(self) -> None:
        self.z: list[int] = []
