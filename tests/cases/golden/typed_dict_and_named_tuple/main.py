from typing import NamedTuple, TypedDict


class Movie(TypedDict, total=False):
    title: str


class Point(NamedTuple):
    x: int
    y: int = 0


movie: Movie = {"title": "M"}
Point(1).x
