"""Arguments of the SQL functions of our own, and their values: by the recipe of ids, and by sets of bytes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from codeanatomy import node_ids
from codeanatomy.node_ids import NATURAL_CHARS, PREFIXES

NASTY = (
    "",
    "~",
    ":",
    "0:",
    "1:a",
    "\x00",
    "e\u0301",
    "é",
    "😀",
    "x\r\ny",
    "\ufeff",
    ";",
    "%",
    "%3B;%25",
    "a\\b",
    "it's",
)
texts = st.one_of(
    st.none(), st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
)
# Around the length from which a natural key is cut, in characters of one to four bytes.
long_texts = st.text("a;%é😀", min_size=NATURAL_CHARS - 2, max_size=NATURAL_CHARS + 3)
kinds = st.one_of(st.none(), st.sampled_from(sorted(PREFIXES)))
numbers = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 2**63 - 1), st.integers(999_998, 1_000_002))
ID_ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "definition_key": st.tuples(texts, texts, texts),
    "node_id": st.tuples(kinds, texts, texts, numbers),
    "natural_id": st.tuples(kinds, texts, st.one_of(texts, long_texts)),
    "edge_id": st.tuples(texts, texts, texts, numbers),
}
# Arguments that may be null.
OPTIONAL = {"definition_key": 0, "node_id": 2, "natural_id": 0, "edge_id": 1}
SPANS = ("span_contains", "span_overlaps", "span_len")


def expected_id(name: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the id by the recipe; a null gives null."""
    required = arguments[: len(arguments) - OPTIONAL[name]]
    if None in required:
        return None
    if name == "node_id":
        kind, key, part, number = arguments
        return node_ids.node_id(kind, key, part if number is None else number)
    if name == "edge_id":
        return node_ids.edge_id(*required, arguments[-1] or 0)
    made: str = getattr(node_ids, name)(*arguments)
    return made


def expected_span(name: str, bounds: tuple[int | None, ...]) -> bool | int | None:
    """Return the value of a function of spans, as sets of bytes."""
    if None in bounds:
        return None
    pairs = [bounds[place : place + 2] for place in range(0, len(bounds), 2)]
    valid = all(0 <= start <= end for start, end in pairs)  # type: ignore[operator]
    sets = [set(range(start, end)) for start, end in pairs]  # type: ignore[arg-type]
    if name == "span_len":
        return len(sets[0]) if valid else None
    if name == "span_overlaps":
        return valid and bool(sets[0] & sets[1])
    (outer_start, outer_end), (inner_start, inner_end) = pairs
    return valid and outer_start <= inner_start and inner_end <= outer_end  # type: ignore[operator]
