class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def describe(value):
    match value:
        case [first, *rest] if rest:
            return first, rest
        case (only,):
            return only
        case {"kind": kind, **others}:
            return kind, others
        case Point(0, y=height) as point:
            return point, height
        case [_, *_]:
            return None
        case _:
            raise ValueError
