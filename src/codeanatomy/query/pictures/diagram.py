"""Describe a picture before it has positions: boxes, the frames around them, and arrows.

    Diagram(
        "Calls around shop.cart.total",
        boxes=(Box("a", "sell", "FUNCTION", rank=-1, frame="shop.cart"), Box("b", "total", rank=0)),
        arrows=(Arrow("a", "b", ("CALL_GRAPH",), confidence=0.7),),
        frames=(BoxFrame("shop.cart", "shop.cart"),),
    )

Names come from repositories that are not trusted: they are shortened here and escaped in `drawing`.

Tests: `tests/unit/query/test_layered.py`.
"""

from __future__ import annotations

from unicodedata import east_asian_width

from msgspec import Struct

# Width of a character of the fonts below, in pixels: names are in a fixed-width font.
TITLE_PX, DETAIL_PX = 7.3, 6.1
TITLE_LINE, DETAIL_LINE = 18, 15
PAD_X, PAD_Y = 10, 7
# Width of the button at the side of a box that can be expanded.
HANDLE = 26
MIN_WIDTH = 60


class Box(Struct, frozen=True):
    """Something to draw: a node, or several nodes that are put together."""

    key: str
    title: str
    # Kind of the node: its colour. Empty for several nodes.
    kind: str = ""
    # Further lines of text.
    details: tuple[str, ...] = ()
    tooltip: str = ""
    # Column, or row if ranks go down; None: found from the arrows.
    rank: int | None = None
    # Key of the frame around it; empty: none.
    frame: str = ""
    # Number of nodes that it stands for.
    amount: int = 1
    focus: bool = False
    # Address to open; none in files.
    link: str = ""
    # Address of the picture with more boxes beside this one, the side where they are, and the words for it.
    expand: str = ""
    expand_left: bool = False
    expand_label: str = ""
    # Names of styles: external, more, cycle, test.
    marks: tuple[str, ...] = ()
    # Lines of the source that belong together with the box, as `12-15 18`.
    lines: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        widths = [text_width(self.title, TITLE_PX), *(text_width(each, DETAIL_PX) for each in self.details)]
        width = max(MIN_WIDTH, max(widths) + 2 * PAD_X + (HANDLE if self.expand else 0))
        return round(width), TITLE_LINE + DETAIL_LINE * len(self.details) + 2 * PAD_Y


class Arrow(Struct, frozen=True):
    """Edges between two boxes."""

    source: str
    target: str
    # Kinds of the edges; the first gives the colour.
    kinds: tuple[str, ...] = ()
    amount: int = 1
    # Greatest confidence of the edges.
    confidence: float = 1.0
    label: str = ""
    # Names of styles: cycle, weak.
    marks: tuple[str, ...] = ()


class BoxFrame(Struct, frozen=True):
    """A frame around the boxes of a module or package, with its name on top."""

    key: str
    title: str
    # Address of the picture where one box stands for the frame.
    collapse: str = ""


class Diagram(Struct, frozen=True):
    """A picture without positions."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    frames: tuple[BoxFrame, ...] = ()
    # Ranks go down instead of right; frames are not possible then.
    down: bool = False
    # Arrows lead to lower ranks: from a class to its base.
    against: bool = False
    # What is not shown, and other remarks.
    notes: tuple[str, ...] = ()


def text_width(text: str, pixels: float) -> float:
    """Return the width of a text in pixels.

    >>> text_width("ab", 7), text_width("漢", 7)
    (14, 14)
    """
    return pixels * sum(2 if not each.isascii() and east_asian_width(each) in "WF" else 1 for each in text)
