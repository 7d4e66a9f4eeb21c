"""What definitions some lines of a file are part of.

    touched(spans, assigned, (8,), starts, texts)      # [Span("shop/money.py", ..., "shop.money.TAX", ...)]

Lines are counted from 0; spans and the starts of lines are bytes of the canonical text, as in the graph.
Tests: `tests/unit/plan/test_changes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codeanatomy.query.walks.enclosing import FARTHEST


class Span(Struct, frozen=True):
    """A definition or docstring, or a variable by the statement that assigns it."""

    path: str
    node_id: str
    kind: str
    subkind: str | None
    name: str
    line: int | None
    first: int
    last: int


def touched(
    spans: Sequence[Span],
    assigned: Sequence[Span],
    lines: Sequence[int] | None,
    starts: Sequence[int],
    texts: Sequence[bytes],
) -> list[Span]:
    """The definitions that lines are part of, in the order of the file; of all lines, the module."""
    if lines is None:
        return [span for span in spans if span.kind == "MODULE"]
    found: dict[str, Span] = {}
    for line in lines:
        if line < len(starts):
            end = starts[line + 1] if line + 1 < len(starts) else FARTHEST
            text = texts[line].strip() if line < len(texts) else b""
            for span in _at(spans, assigned, starts[line], end, text):
                found.setdefault(span.node_id, span)
    return sorted(found.values(), key=lambda span: (span.first, span.name))


def _at(spans: Sequence[Span], assigned: Sequence[Span], begin: int, end: int, text: bytes) -> list[Span]:
    """What begins on a line, else the innermost that it is inside of, or what is assigned there."""
    beginning = [span for span in spans if begin <= span.first < end and span.kind in ("CLASS", "FUNCTION")]
    around = [span for span in spans if span.first <= begin < span.last and span.kind != "DOCSTRING"]
    inner = min(around, key=lambda span: span.last - span.first)
    if inner.kind == "FUNCTION":
        return beginning or [inner]
    # In the body of a class or module.
    variables = [span for span in assigned if span.first < end and span.last > begin]
    if beginning or variables:
        return [*beginning, *variables]
    told = any(span.kind == "DOCSTRING" and span.first < end and span.last > begin for span in spans)
    return [inner] if text and not text.startswith(b"#") and not told else []
