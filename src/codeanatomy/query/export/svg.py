"""Draw a focus as SVG: callers left of it, callees right, a colour for each kind, and a legend.

    write(view, target)

    <svg ...><title>What is around shop.cart.Cart.total</title> ... </svg>

One file that needs nothing else: no script, no font, no style sheet, no image, no link. Every text comes from
untrusted sources, and is escaped where it is put into an element (`_text`, `_title`), and
nowhere else. Tests: `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codeanatomy.query.export.escaping import in_a_line, shortened, xml_text
from codeanatomy.query.export.layout import COLUMN_GAP, HEIGHT, WIDTH, Arrow, Box, Spot, arranged
from codeanatomy.query.export.neighbourhood import Picture
from codeanatomy.query.export.rows import Counting

# Fill and line colour of boxes, by kind.
BOXES = {
    "CLASS": ("#fdebd0", "#b9770e"),
    "FUNCTION": ("#d6eaf8", "#2874a6"),
    "MODULE": ("#e8daef", "#7d3c98"),
    "PACKAGE": ("#f5eef8", "#7d3c98"),
    "QUALIFIED_NAME": ("#f2f3f4", "#7f8c8d"),
    "EXTERNAL_MODULE": ("#f2f3f4", "#7f8c8d"),
    "CALLSITE": ("#d1f2eb", "#148f77"),
    "BINDING": ("#fcf3cf", "#9a7d0a"),
}
OTHER_BOX = ("#ffffff", "#566573")
ARROWS = {
    "CALL_GRAPH": "#2874a6",
    "CONTAINS": "#7d3c98",
    "INHERITS": "#b9770e",
    "INSTANTIATES": "#148f77",
    "OVERRIDES": "#c0392b",
    "RE_EXPORTS": "#9a7d0a",
}
OTHER_ARROW = "#566573"
# More labels than this hide one another; the colours and tooltips are left.
LABELS = 60
MARGIN, LINE = 24, 18
FEW_CHARS = 120
TITLE_CHARS = 1_200
# Average width of a letter of 12 pixels.
LETTER = 7.2


def write(view: Picture, target: Counting) -> None:
    """Write the picture as a file of its own."""
    target.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    target.write(drawn(view).encode())


def drawn(view: Picture) -> str:
    """Return the picture as an SVG element."""
    spots = arranged(view.boxes, view.arrows)
    caption = [f"What is around {view.focus.symbol}", *_facts(view), *view.notes]
    top = MARGIN + LINE * (len(caption) + 2)
    longest = max(len(shortened(each, FEW_CHARS)) for each in caption)
    last = max(spot.x for spot in spots.values())
    # Lines within the last column go around its right side.
    beside = any(spots[each.source].x == spots[each.target].x == last for each in view.arrows)
    width = max(last + WIDTH + (COLUMN_GAP if beside else 0), longest * LETTER, 640) + 2 * MARGIN
    bottom = top + max(spot.y for spot in spots.values()) + HEIGHT + MARGIN
    legend = _legend(view, bottom)
    height = bottom + LINE * (len(legend) + 1)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">',
        _title(caption[0]),
        _markers(),
        f'<rect {size} fill="#ffffff"/>',
        _text(MARGIN, MARGIN + 12, shortened(caption[0], FEW_CHARS), 'font-size="16" font-weight="bold"'),
        *(
            _text(MARGIN, MARGIN + 14 + LINE * number, shortened(each, FEW_CHARS), 'fill="#566573"')
            for number, each in enumerate(caption[1:], 1)
        ),
        f'<g transform="translate({MARGIN} {top})">',
        *_arrows(view.arrows, spots),
        *(_box(box, spots[box.key]) for box in view.boxes),
        "</g>",
        *legend,
        "</svg>\n",
    ]
    return "\n".join(parts)


def _facts(view: Picture) -> list[str]:
    steps = max((abs(step) for step in view.steps.values()), default=0)
    size = f"{len(view.nodes):,} nodes and {view.edges:,} edges, up to {steps} steps away"
    return [
        f"{view.focus.repo_id}, run {view.run_id}: {size}",
        "left: what leads to it; right: what it leads to",
        *(["arrows: see their colours, or point at them"] if len(view.arrows) > LABELS else []),
    ]


def _box(box: Box, spot: Spot) -> str:
    fill, line = BOXES.get(box.kind, OTHER_BOX)
    stroke = 3 if box.focus else 1
    shape = f'width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" stroke="{line}" stroke-width="{stroke}"'
    several = ' stroke-dasharray="5 3"' if box.amount > 1 else ""
    return (
        f'<g transform="translate({spot.x:g} {spot.y:g})">{_title(box.tooltip)}<rect {shape}{several}/>'
        f"{_text(8, 19, box.title, _bold(box))}{_text(8, 36, box.detail, _small())}</g>"
    )


def _bold(box: Box) -> str:
    return 'font-weight="bold"' if box.focus else ""


def _small() -> str:
    return 'font-size="10" fill="#566573"'


def _arrows(arrows: Sequence[Arrow], spots: dict[str, Spot]) -> list[str]:
    lines, labels = [], []
    opacity = 0.7 if len(arrows) <= LABELS else 0.45
    for arrow in arrows:
        start, end = spots[arrow.source], spots[arrow.target]
        colour = ARROWS.get(arrow.kinds[0], OTHER_ARROW)
        path, x, y = _curve(start, end)
        label = ", ".join(arrow.kinds) + (f" x {arrow.amount:,}" if arrow.amount > len(arrow.kinds) else "")
        lines.append(
            f'<g>{_title(label)}<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="{opacity}"'
            f' marker-end="url(#{_marker(arrow.kinds[0])})"/></g>'
        )
        # A halo keeps the words apart from lines that cross them.
        halo = 'font-size="8" text-anchor="middle" stroke="#ffffff" stroke-width="3" paint-order="stroke"'
        labels.append(_text(x, y, label, f'{halo} fill="{colour}"'))
    return [*lines, *(labels if len(labels) <= LABELS else [])]


def _curve(start: Spot, end: Spot) -> tuple[str, float, float]:
    """Return the path of a line from box to box, and the position of its label."""
    y1, y2 = start.y + HEIGHT / 2, end.y + HEIGHT / 2
    if start.x == end.x:
        # Within a column: around the right side, with a wider curve for boxes that are further apart.
        x = start.x + WIDTH
        out = x + min(20 + abs(y2 - y1) / 8, COLUMN_GAP - 20)
        y1, y2 = (y1 - 8, y2 + 8) if start.y == end.y else (y1 + 6, y2 - 6)
        return f"M{x:g} {y1:g} C{out:g} {y1:g} {out:g} {y2:g} {x:g} {y2:g}", (x + 3 * out) / 4, (y1 + y2) / 2
    forth = start.x < end.x
    x1, x2 = (start.x + WIDTH, end.x) if forth else (start.x, end.x + WIDTH)
    bend = (x2 - x1) / 2
    return (
        f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}",
        (x1 + x2) / 2,
        (y1 + y2) / 2 - 2,
    )


def _legend(view: Picture, top: float) -> list[str]:
    """Draw the legend of the colours."""
    shapes = [
        (kind, _sample(*BOXES.get(kind, OTHER_BOX))) for kind in _sorted(box.kind for box in view.boxes)
    ]
    if any(box.amount > 1 for box in view.boxes):
        shapes.append(("several nodes", _sample(*OTHER_BOX, dashed=True)))
    shapes += [
        (kind, f'<path d="M0 0 h26" stroke="{ARROWS.get(kind, OTHER_ARROW)}" stroke-width="2"/>')
        for kind in _sorted(kind for arrow in view.arrows for kind in arrow.kinds)
    ]
    return [
        f'<g transform="translate({MARGIN} {top + LINE * number:g})">{shape}{_text(34, 4, label)}</g>'
        for number, (label, shape) in enumerate(shapes, 1)
    ]


def _sorted(kinds: Iterable[str]) -> list[str]:
    return sorted({kind for kind in kinds if kind})


def _sample(fill: str, line: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    return f'<rect y="-6" width="26" height="12" rx="3" fill="{fill}" stroke="{line}"{dash}/>'


def _markers() -> str:
    """Return the arrow heads, in every colour."""
    heads = [
        f'<marker id="{_marker(kind)}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"'
        f' orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        for kind, colour in (*ARROWS.items(), ("OTHER", OTHER_ARROW))
    ]
    return f"<defs>{''.join(heads)}</defs>"


def _marker(kind: str) -> str:
    return f"head-{kind if kind in ARROWS else 'OTHER'}"


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{xml_text(in_a_line(text))}</text>'


def _title(text: str) -> str:
    """Return the tooltip of an element."""
    lines = shortened(text, TITLE_CHARS).split("\n")
    return f"<title>{xml_text(chr(10).join(map(in_a_line, lines)))}</title>"
