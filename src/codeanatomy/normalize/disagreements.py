"""Where witnesses contradict each other about a file: the fifth source of `diagnostics_norm_v1`.

Each witness turns what it saw into short texts, its *claims*, one list per topic: `12|12||function f` is a
function `f` that begins at byte 12. A claim that one witness of a topic makes and another does not is
disputed, and what is said about one place becomes one row:

    code    bstart  details
    defs    12      ast: function f, libcst: function f, tree_sitter: nothing

| code | witnesses | claims |
|---|---|---|
| `parse_outcome` | ast, libcst, tree_sitter | the file is accepted or rejected |
| `defs` | ast, libcst, tree_sitter | functions, classes and lambdas: first byte, kind, name |
| `imports` | ast, libcst, tree_sitter | imported names: first byte, the statement for this name alone |
| `calls` | ast, libcst | calls: span |
| `parameters` | symtable, bytecode | functions: name, parameters in order |
| `scopes` | ast, symtable | number of functions, lambdas and classes |

What is no disagreement:
- A witness that could not read the file says nothing. Of tree-sitter, which reads everything, that is a file
  with an error or a missing node, or a search that was given up: what it sees near an error follows from it.
- CPython normalises identifiers (NFKC), LibCST and tree-sitter keep the text. So names that are not ASCII,
  and those that tree-sitter cut, are claimed as `?`, which fits any name of that kind at the same place.
- Inside of f-strings that Python before 3.12 misplaces, `ast` has no places; see `span_errors_v1`.
- A definition of tree-sitter ends with the comments in its block, so only beginnings are compared.
- The compiler drops dead code and compiles a `finally` block twice: a function of symtable may have no code
  object or two. But every code object has parameters that symtable tells of.

Lists are compared as they stand, and as sets where they differ. Tests: `tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codeanatomy.normalize.file_view import Said, each
from codeanatomy.normalize.topics import (
    Claims,
    ast_claims,
    bytecode_claims,
    libcst_claims,
    symtable_claims,
    tree_sitter_claims,
)

UNKNOWN = "?"
NOTHING = "nothing"


class Disagreement(NamedTuple):
    """What witnesses say differently about a place."""

    severity: str
    code: str
    bstart: int | None
    bend: int | None
    message: str
    # By witness.
    details: dict[str, str]


class _Place(NamedTuple):
    bstart: int | None
    bend: int | None
    subject: str


def disagreements(
    *,
    ast_files_v1: Said,
    libcst_files_v1: Said,
    tree_sitter_files_v1: Said,
    bytecode_files_v1: Said,
    symtable_files_v1: Said,
) -> Iterator[Disagreement]:
    """The disputed places of a file; a witness without a row for it has an empty one."""
    claims: defaultdict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    said: tuple[tuple[str, Claims], ...] = (
        ("ast", ast_claims(ast_files_v1)),
        ("bytecode", bytecode_claims(bytecode_files_v1)),
        ("libcst", libcst_claims(libcst_files_v1)),
        ("symtable", symtable_claims(symtable_files_v1)),
        ("tree_sitter", tree_sitter_claims(tree_sitter_files_v1)),
    )
    for witness, topics in said:
        for topic, texts in topics.items():
            if texts is not None:
                claims[topic][witness] = texts
    misplaced = [
        (bstart, bend)
        for stage, bstart, bend in each(ast_files_v1.get("errors"), "stage", "bstart", "bend")
        if stage == "position" and bstart is not None and bend is not None
    ]
    for topic, by_witness in claims.items():
        first, *others = by_witness.values()
        # Most lists are equal as they stand, or there is but one.
        if any(other != first for other in others):
            yield from _told(topic, by_witness, misplaced)


def _told(
    topic: str, claims: dict[str, Sequence[str]], misplaced: Sequence[tuple[int, int]]
) -> Iterator[Disagreement]:
    """What is disputed and none of the exceptions, in words."""
    for place, spoken in _disputes(claims).items():
        words = {reader: ", ".join(sorted(spoken.get(reader, ()))) or NOTHING for reader in claims}
        if _is_agreed(spoken, claims) or _is_misplaced(spoken, claims, place, misplaced):
            continue
        # Dead code.
        if topic == "parameters" and "bytecode" not in spoken:
            continue
        about = f"{topic} of {place.subject}" if place.subject else topic
        sentences = "; ".join(f"{reader}: {said}" for reader, said in words.items())
        yield Disagreement(
            "info" if topic == "parse_outcome" else "warning",
            topic,
            place.bstart,
            place.bend,
            f"the witnesses differ about {about}: {sentences}",
            words,
        )


def _disputes(claims: dict[str, Sequence[str]]) -> dict[_Place, dict[str, set[str]]]:
    """The words of each witness about each place that is disputed."""
    agreed = set.intersection(*map(set, claims.values()))
    found: dict[_Place, dict[str, set[str]]] = {}
    for witness, texts in claims.items():
        for claim in texts:
            if claim not in agreed:
                begin, end, subject, words = claim.split("|", 3)
                place = _Place(int(begin) if begin else None, int(end) if end else None, subject)
                found.setdefault(place, {}).setdefault(witness, set()).add(words)
    return found


def _is_agreed(spoken: dict[str, set[str]], claims: dict[str, Any]) -> bool:
    """All speak of the same kind of thing, and at most one name is known."""
    words = set().union(*spoken.values())
    kinds = {said.split(" ", 1)[0] for said in words}
    known = {said for said in words if not said.endswith(UNKNOWN)}
    return spoken.keys() == claims.keys() and len(kinds) == 1 and len(known) <= 1


def _is_misplaced(
    spoken: dict[str, set[str]],
    claims: dict[str, Any],
    place: _Place,
    misplaced: Sequence[tuple[int, int]],
) -> bool:
    """CPython is silent about what stands in an f-string that it misplaces."""
    at = place.bstart
    if at is None or "ast" not in claims or "ast" in spoken:
        return False
    return any(begin <= at < end for begin, end in misplaced)
