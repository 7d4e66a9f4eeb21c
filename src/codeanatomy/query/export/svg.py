"""Draw a focus as SVG: callers left of it, callees right, a colour for each kind, and a legend.

    write(view, target)

    <svg ...><text ...>What is around shop.cart.Cart.total</text> ... </svg>

One file that needs nothing else: no script, no font, no style sheet, no image, no link
(`codeanatomy.query.pictures`). Tests: `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from codeanatomy.query.export.neighbourhood import Picture
from codeanatomy.query.export.rows import Counting
from codeanatomy.query.pictures.drawing import LABELS, draw_file
from codeanatomy.query.pictures.layered import arrange


def write(view: Picture, target: Counting) -> None:
    """Write the picture as a file of its own."""
    target.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    target.write(drawn(view).encode())


def drawn(view: Picture) -> str:
    """Return the picture as an SVG element."""
    diagram = view.diagram
    return draw_file(diagram, arrange(diagram), _facts(view))


def _facts(view: Picture) -> list[str]:
    steps = max((abs(step) for step in view.steps.values()), default=0)
    size = f"{len(view.nodes):,} nodes and {view.edges:,} edges, up to {steps} steps away"
    return [
        f"{view.focus.repo_id}, run {view.run_id}: {size}",
        "left: what leads to it; right: what it leads to",
        *(["arrows: see their colours, or point at them"] if len(view.arrows) > LABELS else []),
    ]
