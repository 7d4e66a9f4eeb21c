"""Draw a diagram as SVG, with colours for kinds, and a legend.

    draw(diagram, arrange(diagram))               # an element for a page: boxes are links
    draw_file(diagram, arrange(diagram), facts)   # a file of its own: with caption and legend, without links

Colours are attributes, so that a file needs no style sheet; a page may replace them by its own, since each
element has a class, too. There is no script, no style and no image. Every text comes from repositories that
are not trusted: it is escaped where it is put into an element (`_text`, `_title`, `_attributes`).

Tests: `tests/unit/query/test_drawing.py`, `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import structs

from codeanatomy.query.export.escaping import in_a_line, shortened, xml_text
from codeanatomy.query.pictures.diagram import (
    DETAIL_LINE,
    HANDLE,
    PAD_X,
    PAD_Y,
    TITLE_LINE,
    Arrow,
    Box,
    BoxFrame,
    Diagram,
)
from codeanatomy.query.pictures.layered import Placed, Point, Rect, Route

# Fill and line colour of boxes, by kind. See `KIND_LABELS` for the legend.
BOXES = {
    "CLASS": ("#fdebd0", "#9c640c"),
    "FUNCTION": ("#dcecf7", "#21618c"),
    "MODULE": ("#ecdff2", "#6c3483"),
    "PACKAGE": ("#f5eef8", "#6c3483"),
    "QUALIFIED_NAME": ("#f2f3f4", "#626e70"),
    "EXTERNAL_MODULE": ("#f2f3f4", "#626e70"),
    "CALLSITE": ("#d1f2eb", "#0e6655"),
    "BINDING": ("#fcf3cf", "#7d6608"),
    "entry": ("#d5f0dd", "#1b6e3c"),
    "normal": ("#f4f6f8", "#55636f"),
    "handler": ("#fbdcd9", "#a32020"),
    "exit": ("#e3e6e9", "#1b2733"),
}
OTHER_BOX = ("#ffffff", "#55636f")
ARROWS = {
    "CALL_GRAPH": "#21618c",
    "CONTAINS": "#6c3483",
    "INHERITS": "#9c640c",
    "INSTANTIATES": "#0e6655",
    "OVERRIDES": "#a32020",
    "RE_EXPORTS": "#7d6608",
    "IMPORTS_MODULE": "#6c3483",
    "CFG_NEXT": "#55636f",
    "CFG_JUMP": "#55636f",
    "CFG_BRANCH_TRUE": "#1b6e3c",
    "CFG_BRANCH_FALSE": "#8a4b00",
    "CFG_EXCEPTION": "#a32020",
}
OTHER_ARROW = "#55636f"
CYCLE = "#c0392b"
# Confidence below which an arrow is dashed.
CERTAIN = 0.9
# More labels than this hide one another; colours and tooltips are left.
LABELS = 60
CAPTION_LINE, CAPTION_CHARS, TOOLTIP_CHARS = 18, 120, 1_200
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PAPER, INK, MUTED, LINE = "#ffffff", "#1b2733", "#55636f", "#c4ccd4"


def draw(diagram: Diagram, placed: Placed) -> str:
    """Return the diagram as an element of a page."""
    opened = _opened(0, placed.width, placed.height, diagram.title)
    return "\n".join([opened, *_body(diagram, placed), "</svg>"])


def draw_file(diagram: Diagram, placed: Placed, facts: Sequence[str] = ()) -> str:
    """Return the diagram as a file of its own, with facts about it below its title."""
    caption = [diagram.title, *facts, *diagram.notes]
    top = 14 + CAPTION_LINE * len(caption)
    legend, legend_width = _legend_row(diagram)
    longest = max(len(shortened(each, CAPTION_CHARS)) for each in caption)
    width = max(placed.width, longest * 7.3 + 40, legend_width + 40)
    height = top + placed.height + 40
    parts = [
        _opened(0, width, height, diagram.title),
        f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>',
        *(
            _text(
                16,
                10 + CAPTION_LINE * number,
                shortened(each, CAPTION_CHARS),
                f'fill="{INK}" font-size="14" font-weight="bold"' if number == 1 else f'fill="{MUTED}"',
            )
            for number, each in enumerate(caption, 1)
        ),
        f'<g transform="translate(0 {top})">',
        *_body(_unlinked(diagram), placed),
        "</g>",
        f'<g transform="translate(16 {top + placed.height + 16:g})">{legend}</g>',
        "</svg>\n",
    ]
    return "\n".join(parts)


def draw_legend(diagram: Diagram) -> list[str]:
    """Return the samples of the legend, each as an element of a page."""
    return [
        f"{_opened(-12, width, 24, label, 'img')}{part}</svg>" for label, part, width in _samples(diagram)
    ]


def _samples(diagram: Diagram) -> list[tuple[str, str, float]]:
    """Return the samples of colours and lines: label, drawing and width of each."""
    samples = [
        (kind_label(kind), _sample(f"box {_style(kind)}", *BOXES.get(kind, OTHER_BOX)))
        for kind in _sorted(box.kind for box in diagram.boxes)
    ]
    if any(box.amount > 1 for box in diagram.boxes):
        samples.append(("several nodes", _sample("box several", *OTHER_BOX, dash="5 3")))
    samples += [
        (kind_label(kind), _line(kind))
        for kind in _sorted(arrow.kinds[0] for arrow in diagram.arrows if arrow.kinds)
    ]
    if any(arrow.confidence < CERTAIN for arrow in diagram.arrows):
        label = f"confidence below {CERTAIN:.0%}".replace("%", " %")
        samples.append((label, _line("", 'stroke-dasharray="5 4"')))
    if any("weak" in arrow.marks for arrow in diagram.arrows):
        samples.append(("only inside a function or for type checking", _line("", 'stroke-dasharray="2 3"')))
    marks = [*(arrow.marks for arrow in diagram.arrows), *(box.marks for box in diagram.boxes)]
    if any("cycle" in each for each in marks):
        samples.append(("part of a cycle", _line("", marked="cycle", colour=CYCLE)))
    return [
        (label, f"{shape}{_text(34, 4, label, _ink())}", 40 + 6.8 * len(label)) for label, shape in samples
    ]


def _legend_row(diagram: Diagram) -> tuple[str, float]:
    """Return the legend in a row, and its width."""
    parts, at = [], 0.0
    for _, part, width in _samples(diagram):
        parts.append(f'<g transform="translate({at:g} 0)">{part}</g>')
        at += width + 14
    return "".join(parts), at


def _opened(top: float, width: float, height: float, title: str, role: str = "group") -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 {top:g} {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="{role}" aria-label="{_attribute(title)}"'
        f' font-family="{FONT}" font-size="12">'
    )


def _body(diagram: Diagram, placed: Placed) -> list[str]:
    lines, labels = [], []
    faint = len(diagram.arrows) > LABELS
    frames = [frame for frame in diagram.frames if frame.key in placed.frames]
    for arrow, route in zip(diagram.arrows, placed.routes, strict=True):
        if route.points:
            line, label = _arrow(arrow, route, diagram.down, faint)
            lines.append(line)
            labels.append(label)
    return [
        _heads(diagram.arrows),
        *(_frame(placed.frames[frame.key]) for frame in frames),
        f'<g class="arrows" fill="none" stroke-width="{1 if faint else 1.3}">',
        *lines,
        "</g>",
        *(_frame_title(frame, placed.frames[frame.key]) for frame in frames),
        *(_box(box, placed.boxes[box.key]) for box in diagram.boxes),
        *(labels if len(labels) <= LABELS or diagram.down else []),
    ]


def _box(box: Box, area: Rect) -> str:
    fill, line = BOXES.get(box.kind, OTHER_BOX)
    several = ' stroke-dasharray="5 3"' if box.amount > 1 or "more" in box.marks else ""
    line = CYCLE if "cycle" in box.marks else line
    shape = (
        f'<rect class="shape" width="{area.width:g}" height="{area.height:g}" rx="6" fill="{fill}"'
        f' stroke="{line}" stroke-width="{2.5 if box.focus else 1}"{several}/>'
    )
    left = PAD_X + (HANDLE if box.expand and box.expand_left else 0)
    weight = ' font-weight="bold"' if box.focus else ""
    texts = [_text(left, PAD_Y + 13, box.title, f'class="name" fill="{INK}"{weight}')]
    texts += [
        _text(
            left,
            PAD_Y + TITLE_LINE + 11 + DETAIL_LINE * number,
            each,
            f'class="detail" font-size="10" fill="{MUTED}"',
        )
        for number, each in enumerate(box.details)
    ]
    inside = f"{_title(box.tooltip or box.title)}{shape}{''.join(texts)}"
    if box.link:
        inside = f'<a href="{xml_text(box.link)}" aria-label="{_attribute(_label(box))}">{inside}</a>'
    classes = [
        "box",
        _style(box.kind),
        *box.marks,
        *(["focus"] if box.focus else []),
        *(["several"] if box.amount > 1 else []),
    ]
    lines = f' data-lines="{_attribute(box.lines)}"' if box.lines else ""
    return (
        f'<g class="{" ".join(classes)}" data-key="{_attribute(box.key)}"{lines}'
        f' transform="translate({area.x:g} {area.y:g})">{inside}{_handle(box, area)}</g>'
    )


def _handle(box: Box, area: Rect) -> str:
    """Return the button at the side of a box that can be expanded."""
    if not box.expand:
        return ""
    x = 0 if box.expand_left else area.width - HANDLE
    middle = area.height / 2
    upright = "" if "expanded" in box.marks else f" M{x + HANDLE / 2:g} {middle - 5:g} v10"
    return (
        f'<a class="expand" href="{xml_text(box.expand)}" aria-label="{_attribute(box.expand_label)}">'
        f"{_title(box.expand_label)}"
        f'<rect x="{x + 2:g}" y="2" width="{HANDLE - 4}" height="{area.height - 4:g}" rx="4" fill="{PAPER}"'
        f' fill-opacity="0.6"/><path d="M{x + 6:g} {middle:g} h{HANDLE - 12}{upright}"'
        f' stroke="{INK}" stroke-width="1.6"/></a>'
    )


def _frame(area: Rect) -> str:
    return (
        f'<g class="frame" transform="translate({area.x:g} {area.y:g})">'
        f'<rect class="shape" width="{area.width:g}" height="{area.height:g}" rx="8" fill="#f5f7f9"'
        f' stroke="{LINE}"/></g>'
    )


def _frame_title(frame: BoxFrame, area: Rect) -> str:
    """Return the name of a frame, which is also the button to collapse it."""
    halo = f'stroke="{PAPER}" stroke-width="3" paint-order="stroke"'
    title = _text(10, 16, frame.title, f'class="frame-title" font-size="10" fill="{MUTED}" {halo}')
    if frame.collapse:
        label = f"Collapse {frame.title}"
        # The bar is part of the link, so that it is large enough for a finger.
        title = (
            f'<a href="{xml_text(frame.collapse)}" aria-label="{_attribute(label)}">{_title(label)}'
            f'<rect class="bar" width="{area.width:g}" height="22" fill="{PAPER}" fill-opacity="0"/>'
            f'<path d="M{area.width - 20:g} 12 h10" stroke="{MUTED}" stroke-width="1.6"/>{title}</a>'
        )
    return f'<g class="frame" transform="translate({area.x:g} {area.y:g})">{title}</g>'


def _arrow(arrow: Arrow, route: Route, down: bool, faint: bool) -> tuple[str, str]:
    """Return the line of an arrow, and its label."""
    kind = arrow.kinds[0] if arrow.kinds else ""
    cycle = "cycle" in arrow.marks
    colour = CYCLE if cycle else ARROWS.get(kind, OTHER_ARROW)
    dash = (
        "2 3"
        if "weak" in arrow.marks
        else "5 4"
        if arrow.confidence < CERTAIN or kind == "CFG_EXCEPTION"
        else ""
    )
    label = ", ".join(map(kind_label, arrow.kinds)) + (f" x {arrow.amount:,}" if arrow.amount > 1 else "")
    sure = f", confidence {arrow.confidence:.0%}".replace("%", " %") if arrow.confidence < 1 else ""
    classes = " ".join(["arrow", _style(kind), *arrow.marks, *(["back"] if route.back else [])])
    # Within a column, arrows are secondary.
    opacity = 0.5 if faint else 0.35 if route.back and not down and not cycle else 0.85
    line = (
        f'<g class="{classes}" data-from="{_attribute(arrow.source)}" data-to="{_attribute(arrow.target)}">'
        f'{_title(label + sure)}<path d="{_curve(route, down)}" stroke="{colour}"'
        f'{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""} stroke-opacity="{opacity}"'
        f' marker-end="url(#{_head(arrow)})"/></g>'
    )
    if not arrow.label:
        return line, ""
    x, y = _middle(route, down)
    # A halo keeps the label apart from lines that cross it.
    halo = f'font-size="9" text-anchor="middle" stroke="{PAPER}" stroke-width="3" paint-order="stroke"'
    return line, _text(x, y, arrow.label, f'class="label {_style(kind)}" {halo} fill="{colour}"')


def _curve(route: Route, down: bool) -> str:
    """Return a path through the points of a route, which leaves and arrives in the direction of the ranks."""
    points = route.points
    if route.back and len(points) == 4 and points[1] != points[2] and _is_around(points, down):
        (x1, y1), (x2, y2), (x3, y3), (x4, y4) = points
        return f"M{x1:g} {y1:g} C{x2:g} {y2:g} {x3:g} {y3:g} {x4:g} {y4:g}"
    parts = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for (x1, y1), (x2, y2) in pairwise(points):
        if (x1 == x2 and down) or (y1 == y2 and not down):
            parts.append(f"L{x2:g} {y2:g}")
        elif down:
            middle = (y1 + y2) / 2
            parts.append(f"C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}")
        else:
            middle = (x1 + x2) / 2
            parts.append(f"C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}")
    return " ".join(parts)


def _is_around(points: Sequence[Point], down: bool) -> bool:
    """Whether a route stays in one rank: it leads around the far side of the boxes."""
    axis = 1 if down else 0
    return points[1][axis] == points[2][axis]


def _middle(route: Route, down: bool) -> Point:
    """Return the position of a label: near the start, where lines to one target have not met yet."""
    points = route.points
    first = 1 if route.back and len(points) == 4 and _is_around(points, down) else 0
    (x1, y1), (x2, y2) = points[first : first + 2]
    return ((x1 + x2) / 2, (y1 + y2) / 2 + (3 if down else -2))


def _heads(arrows: Iterable[Arrow]) -> str:
    """Return the arrow heads in the colours that occur; that of a base class is hollow."""
    heads = []
    for name in sorted({_head(arrow) for arrow in arrows}):
        kind = name.removeprefix("head-")
        colour = CYCLE if kind == "cycle" else ARROWS.get(kind, OTHER_ARROW)
        fill = PAPER if kind == "INHERITS" else colour
        heads.append(
            f'<marker id="{name}" viewBox="-1 -1 10 10" refX="8" refY="4" markerWidth="9" markerHeight="9"'
            f' markerUnits="userSpaceOnUse" orient="auto"><path class="head {_style(kind)}"'
            f' d="M0 0 L8 4 L0 8 z" fill="{fill}" stroke="{colour}"/></marker>'
        )
    return f"<defs>{''.join(heads)}</defs>"


def _head(arrow: Arrow) -> str:
    if "cycle" in arrow.marks:
        return "head-cycle"
    return f"head-{arrow.kinds[0]}" if arrow.kinds and arrow.kinds[0] in ARROWS else "head-other"


def _unlinked(diagram: Diagram) -> Diagram:
    """Return the diagram without addresses, which lead nowhere from a file."""
    return Diagram(
        diagram.title,
        tuple(_without(box, "link", "expand", "lines") for box in diagram.boxes),
        diagram.arrows,
        tuple(BoxFrame(frame.key, frame.title) for frame in diagram.frames),
        diagram.down,
        diagram.against,
    )


def _without(box: Box, *names: str) -> Box:
    return structs.replace(box, **dict.fromkeys(names, ""))


def _label(box: Box) -> str:
    return " ".join(filter(None, [box.title, kind_label(box.kind), *box.details]))


def kind_label(kind: str) -> str:
    """Return the text for a kind.

    >>> kind_label("CALL_GRAPH"), kind_label("CFG_BRANCH_TRUE"), kind_label("handler")
    ('calls', 'true', 'exception handler')
    """
    return KIND_LABELS.get(kind, kind.replace("_", " ").lower())


KIND_LABELS = {
    "CALL_GRAPH": "calls",
    "INHERITS": "inherits from",
    "IMPORTS_MODULE": "imports",
    "QUALIFIED_NAME": "external",
    "EXTERNAL_MODULE": "external module",
    "CFG_NEXT": "next",
    "CFG_JUMP": "jump",
    "CFG_BRANCH_TRUE": "true",
    "CFG_BRANCH_FALSE": "false",
    "CFG_EXCEPTION": "exception",
    "normal": "block",
    "handler": "exception handler",
}


def _style(kind: str) -> str:
    """Return the class of a kind; unknown kinds have none, since they may hold any text."""
    return kind if kind in BOXES or kind in ARROWS or kind == "cycle" else "other"


def _sorted(kinds: Iterable[str]) -> list[str]:
    return sorted({kind for kind in kinds if kind})


def _sample(classes: str, fill: str, line: str, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<g class="{classes}"><rect class="shape" y="-6" width="26" height="12" rx="3" fill="{fill}"'
        f' stroke="{line}"{dashed}/></g>'
    )


def _line(kind: str, style: str = "", marked: str = "", colour: str = "") -> str:
    colour = colour or ARROWS.get(kind, OTHER_ARROW)
    line = f'<path d="M0 0 h26" stroke="{colour}" stroke-width="2" {style}/>'
    return f'<g class="arrow {marked or _style(kind)}">{line}</g>'


def _ink() -> str:
    return f'class="name" font-size="11" fill="{INK}"'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{xml_text(in_a_line(text))}</text>'


def _title(text: str) -> str:
    """Return the tooltip of an element."""
    lines = shortened(text, TOOLTIP_CHARS).split("\n")
    return f"<title>{xml_text(chr(10).join(map(in_a_line, lines)))}</title>"


def _attribute(text: str) -> str:
    return xml_text(in_a_line(shortened(text, 4 * TOOLTIP_CHARS)))
