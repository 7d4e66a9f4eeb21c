__all__ = ["area", "Square"]


def area(): ...


class Square: ...


def hidden(): ...
