"""Map changed lines of a file to the definitions they belong to.

    touched_definitions(spans, assigned, (8,), starts, texts)
    # [DefinitionSpan("shop/money.py", ..., "shop.money.TAX", ...)]

Lines are counted from 0; spans and line starts are byte offsets in the canonical text, as in the graph.

Tests: `tests/unit/query/test_changed_definitions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codeanatomy.query.walks.enclosing import MAX_BYTE


class DefinitionSpan(Struct, frozen=True):
    """The span of a definition or docstring, or of a statement that assigns a variable."""

    path: str
    node_id: str
    kind: str
    subkind: str | None
    name: str
    line: int | None
    first: int
    last: int


def touched_definitions(
    spans: Sequence[DefinitionSpan],
    assigned: Sequence[DefinitionSpan],
    lines: Sequence[int] | None,
    starts: Sequence[int],
    texts: Sequence[bytes],
) -> list[DefinitionSpan]:
    """Return the definitions that the lines belong to, in file order; the module if `lines` is None (all)."""
    if lines is None:
        return [span for span in spans if span.kind == "MODULE"]
    definitions: dict[str, DefinitionSpan] = {}
    for line in lines:
        if line < len(starts):
            end = starts[line + 1] if line + 1 < len(starts) else MAX_BYTE
            text = texts[line].strip() if line < len(texts) else b""
            for span in _definitions_of_line(spans, assigned, starts[line], end, text):
                definitions.setdefault(span.node_id, span)
    return sorted(definitions.values(), key=lambda span: (span.first, span.name))


def _definitions_of_line(
    spans: Sequence[DefinitionSpan],
    assigned: Sequence[DefinitionSpan],
    begin: int,
    end: int,
    text: bytes,
) -> list[DefinitionSpan]:
    """Return the definitions that start on a line, or the function around it.

    In the body of a class or module: the variables assigned there, else the class or module.
    """
    starting = [span for span in spans if begin <= span.first < end and span.kind in ("CLASS", "FUNCTION")]
    around = [span for span in spans if span.first <= begin < span.last and span.kind != "DOCSTRING"]
    inner = min(around, key=lambda span: span.last - span.first)
    if inner.kind == "FUNCTION":
        return starting or [inner]
    variables = [span for span in assigned if span.first < end and span.last > begin]
    if starting or variables:
        return [*starting, *variables]
    in_docstring = any(span.kind == "DOCSTRING" and span.first < end and span.last > begin for span in spans)
    return [inner] if text and not text.startswith(b"#") and not in_docstring else []
