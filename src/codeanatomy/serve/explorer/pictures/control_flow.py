"""Build the diagram of the control flow of a function, and the lines of source that belong to its blocks.

    picture = control_flow_diagram(reader, symbol, address)
    picture.diagram.boxes[0].lines      # "775": the box and these lines are highlighted together

A block has the lines of its own code. Lines between them that no other block has, such as those of a long
call, belong to it, too.

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.export.escaping import shortened
from codeanatomy.query.pictures.diagram import Arrow, Box, Diagram
from codeanatomy.query.walks.control_flow import FlowBlock, FunctionFlow, control_flow
from codeanatomy.serve.explorer.pictures.address import PictureAddress
from codeanatomy.serve.explorer.pictures.columns import MAX_BOXES
from codeanatomy.serve.explorer.source_text import LexedText, SourceLine, lexed, render_lines, source_file

CODE_CHARS = 38
# Lines of code in a box.
CODE_LINES = 3
LABELS = {
    ("CFG_BRANCH_TRUE", None): "true",
    ("CFG_BRANCH_FALSE", None): "false",
    ("CFG_BRANCH_TRUE", "loop_body"): "next element",
    ("CFG_BRANCH_FALSE", "loop_exit"): "no more",
}
EXCEPTION = "CFG_EXCEPTION"
TESTED = (
    "True and false are those of the value that the bytecode tests:"
    " `if not x` tests x, `x is not None` tests x is None."
)


class FlowRow(Struct, frozen=True):
    """A block, as a row of the list below the picture."""

    number: int
    subkind: str
    lines: str
    code: str
    first_line: int | None
    # Numbers of the next blocks, with the condition.
    following: tuple[str, ...]


class FlowDiagram(Struct, frozen=True):
    """The diagram, the source beside it, and the same facts as a list."""

    diagram: Diagram
    path: str
    source: tuple[SourceLine, ...]
    # Lines that are not shown because the code is too long.
    cut: int
    rows: tuple[FlowRow, ...]


def control_flow_diagram(reader: Reader, symbol: Symbol, address: PictureAddress) -> FlowDiagram:
    """Draw the control flow of a function, class body or module."""
    flow = control_flow(reader, symbol)
    if flow is None:
        raise UsageError(
            f"{shortened(symbol.symbol, 200)} has no code of its own",
            "choose a function, a class or a module",
        )
    file = source_file(reader, symbol.repo_id, flow.path)
    text = (file.text if file is not None else None) or ""
    source = lexed(text)
    first, last = flow.line, source.line_of(max(flow.bstart, flow.bend - 1))
    shown = min(last, first + 2_000)
    blocks = _shown(flow, address)
    lines = _lines(flow, source)
    numbers = {block.node_id: number for number, block in enumerate(flow.blocks)}
    boxes = [
        _box(block, numbers[block.node_id], lines[block.node_id], source) for block in blocks[:MAX_BOXES]
    ]
    keys = {box.key for box in boxes}
    arrows = [
        Arrow(edge.source, edge.target, (edge.kind,), label=LABELS.get((edge.kind, edge.role), ""))
        for edge in flow.edges
        if edge.source in keys
        and edge.target in keys
        and not (edge.kind == EXCEPTION and address.exceptions == "hide")
    ]
    cut = len(blocks) - len(boxes)
    notes = (TESTED, *((f"{cut:,} more blocks are not shown",) if cut else ()))
    diagram = Diagram(
        f"Control flow of {shortened(symbol.symbol, 300)}",
        tuple(boxes),
        tuple(arrows),
        down=True,
        notes=notes,
    )
    return FlowDiagram(
        diagram,
        flow.path,
        tuple(render_lines(text, first, shown)),
        last - shown,
        _rows(flow, boxes, arrows, numbers),
    )


def _shown(flow: FunctionFlow, address: PictureAddress) -> list[FlowBlock]:
    """Return the blocks; without exceptions, those that are reached without one."""
    if address.exceptions != "hide":
        return list(flow.blocks)
    after: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.kind != EXCEPTION:
            after.setdefault(edge.source, []).append(edge.target)
    reached = {flow.blocks[0].node_id}
    waiting = list(reached)
    while waiting:
        for target in after.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return [block for block in flow.blocks if block.node_id in reached]


def _lines(flow: FunctionFlow, source: LexedText) -> dict[str, list[int]]:
    """Return the lines of each block: its own, and those between that no other block has."""
    owned = {line for block in flow.blocks for line in block.lines}
    lines: dict[str, list[int]] = {}
    for block in flow.blocks:
        every = list(block.lines)
        if every and block.bend is not None:
            end = source.line_of(max(block.bend - 1, 0))
            every += [end] if every[-1] < end and not _any_between(every[-1], end + 1, owned) else []
        filled: list[int] = []
        for line in every:
            if filled and line - filled[-1] > 1 and not _any_between(filled[-1], line, owned):
                filled += range(filled[-1] + 1, line)
            filled.append(line)
        lines[block.node_id] = filled
    return lines


def _any_between(first: int, last: int, owned: Collection[int]) -> bool:
    return any(line in owned for line in range(first + 1, last))


def ranges(lines: Sequence[int]) -> str:
    """Format lines in ascending order as ranges.

    >>> ranges([3, 4, 5, 9])
    '3-5 9'
    """
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _code(line: int, source: LexedText) -> str:
    if not 1 <= line <= source.line_count:
        return ""
    start, end = source.span(line)
    return shortened(
        source.data[start : min(end, start + 4_000)].decode(errors="replace").strip(), CODE_CHARS
    )


def _box(block: FlowBlock, number: int, lines: Sequence[int], source: LexedText) -> Box:
    code = [text for text in (_code(line, source) for line in lines[: 2 * CODE_LINES]) if text][:CODE_LINES]
    if len(lines) == 1 and block.bstart is not None and block.bend is not None:
        # Of a line with several blocks, only the part of this one.
        part = source.data[block.bstart : min(block.bend, block.bstart + 4_000)].decode(errors="replace")
        code = [part] if part and not set(part) & {"\n", "\r"} else code
    where = ranges(lines)
    title = {"entry": "entry", "exit": "exit", "handler": "handler"}.get(block.subkind, "")
    more = len(lines) - CODE_LINES
    details = [shortened(each, CODE_CHARS) for each in code]
    if more > 0 and len(code) == CODE_LINES:
        details.append(f"… {more} more lines")
    texts = f"lines {where}" if len(lines) > 1 else f"line {where}"
    head = " ".join(each for each in (title, texts if lines else "no line" if not title else "") if each)
    return Box(
        block.node_id,
        shortened(head, CODE_CHARS),
        block.subkind,
        tuple(details),
        f"block {number}, {block.subkind}\n{texts if lines else 'added by the compiler'}",
        link=f"#L{lines[0]}" if lines else "",
        lines=where,
    )


def _rows(
    flow: FunctionFlow, boxes: Sequence[Box], arrows: Sequence[Arrow], numbers: Mapping[str, int]
) -> tuple[FlowRow, ...]:
    following: dict[str, list[str]] = {}
    texts = {EXCEPTION: "exception", "CFG_JUMP": "jump"}
    for arrow in arrows:
        label = arrow.label or texts.get(arrow.kinds[0], "")
        following.setdefault(arrow.source, []).append(
            f"{numbers[arrow.target]} ({label})" if label else str(numbers[arrow.target])
        )
    return tuple(
        FlowRow(
            numbers[box.key],
            box.kind,
            box.lines,
            box.details[0] if box.details else "",
            int(box.link.removeprefix("#L")) if box.link else None,
            tuple(following.get(box.key, ())),
        )
        for box in boxes
    )
