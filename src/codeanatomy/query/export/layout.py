"""Arrange the boxes of a picture: a column for each step from the focus, and few crossings.

    placed = arranged([Box("a", -1, "caller"), Box("b", 0, "focus")], [Arrow("a", "b", ("CALL_GRAPH",), 1)])
    placed["a"].x < placed["b"].x

What leads to the focus is left of it, what it leads to right of it. In a column, boxes move to the average
height of the boxes they are connected to, a few times forth and back; boxes of the same height are ordered by
name, so that the same graph gives the same picture. Tests: `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

WIDTH, HEIGHT = 236, 46
COLUMN_GAP, ROW_GAP = 150, 16
SWEEPS = 6


class Box(Struct, frozen=True):
    """Something to draw: a node, or the nodes of a module or package that are as many steps away."""

    key: str
    # Its column: steps from the focus, less than 0 if it leads there.
    step: int
    title: str
    detail: str = ""
    # Of the node, else empty.
    kind: str = ""
    tooltip: str = ""
    # How many nodes it stands for.
    amount: int = 1
    focus: bool = False


class Arrow(Struct, frozen=True):
    """Edges between two boxes."""

    source: str
    target: str
    kinds: tuple[str, ...]
    amount: int


class Spot(Struct, frozen=True):
    """The upper left corner of a box."""

    x: float
    y: float


def arranged(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, Spot]:
    """Return the position of each box; the smallest coordinates are (0, 0)."""
    columns: dict[int, list[Box]] = {}
    for box in sorted(boxes, key=lambda each: (each.step, not each.focus, each.title, each.key)):
        columns.setdefault(box.step, []).append(box)
    beside = _neighbours(arrows)
    steps = sorted(columns)
    heights = _heights(columns.values())
    for sweep in range(SWEEPS):
        for step in steps if sweep % 2 else reversed(steps):
            columns[step].sort(key=lambda box: _wanted(box, beside, heights))
            heights |= _heights([columns[step]])
    top = max((_middle(column) for column in columns.values()), default=0.0)
    return {
        box.key: Spot(number * (WIDTH + COLUMN_GAP), round(top + heights[box.key], 1))
        for number, step in enumerate(steps)
        for box in columns[step]
    }


def _neighbours(arrows: Iterable[Arrow]) -> dict[str, list[str]]:
    neighbours: dict[str, list[str]] = {}
    for arrow in arrows:
        neighbours.setdefault(arrow.source, []).append(arrow.target)
        neighbours.setdefault(arrow.target, []).append(arrow.source)
    return neighbours


def _wanted(box: Box, beside: dict[str, list[str]], heights: dict[str, float]) -> tuple[float, str, str]:
    near = [heights[key] for key in beside.get(box.key, ()) if key != box.key]
    return (sum(near) / len(near) if near else heights[box.key]), box.title, box.key


def _heights(columns: Iterable[Sequence[Box]]) -> dict[str, float]:
    """Above and below the middle of the picture, where each column has its middle."""
    return {
        box.key: number * (HEIGHT + ROW_GAP) - _middle(column)
        for column in columns
        for number, box in enumerate(column)
    }


def _middle(column: Sequence[Box]) -> float:
    return (len(column) * (HEIGHT + ROW_GAP) - ROW_GAP) / 2
