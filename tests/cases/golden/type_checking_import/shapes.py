class Shape:
    def area(self) -> float:
        return 1.0
