"""Compare the witnesses of a file and report where they contradict each other (`diagnostics_norm_v1`).

Each witness states its evidence as short texts, its *claims*, one list per topic (`topics`):
`12|12||function f` is a function `f` that begins at byte 12. A claim that one witness of a topic makes and
another does not is disputed, and all claims about one position become one row:

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

These are not disagreements:
- A witness that could not read the file claims nothing. For tree-sitter, which reads everything, that is a
  file with an error or a missing node, or a search that was given up: what it reports near an error is a
  consequence of that error.
- CPython normalises identifiers (NFKC), LibCST and tree-sitter keep the text. So names that are not ASCII,
  and those that tree-sitter truncated, are claimed as `?`, which matches any name of that kind at the same
  position.
- Inside of f-strings that Python before 3.12 misplaces, `ast` has no positions; see `span_errors_v1`.
- A definition of tree-sitter ends with the comments in its block, so only beginnings are compared.
- The compiler drops dead code and compiles a `finally` block twice: a function of symtable may have no code
  object or two. But the parameters of every code object are in symtable.

Lists are compared as lists first, and as sets where they differ.
Tests: `tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codeanatomy.file_view import Row, iter_rows
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
    """A position about which witnesses make different claims."""

    severity: str
    code: str
    bstart: int | None
    bend: int | None
    message: str
    # The claims by witness.
    details: dict[str, str]


class _Position(NamedTuple):
    bstart: int | None
    bend: int | None
    subject: str


def disagreements(
    *,
    ast_files_v1: Row,
    libcst_files_v1: Row,
    tree_sitter_files_v1: Row,
    bytecode_files_v1: Row,
    symtable_files_v1: Row,
) -> Iterator[Disagreement]:
    """Yield the disputed positions of a file; the row of a witness without evidence is empty."""
    claims: defaultdict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    witnesses: tuple[tuple[str, Claims], ...] = (
        ("ast", ast_claims(ast_files_v1)),
        ("bytecode", bytecode_claims(bytecode_files_v1)),
        ("libcst", libcst_claims(libcst_files_v1)),
        ("symtable", symtable_claims(symtable_files_v1)),
        ("tree_sitter", tree_sitter_claims(tree_sitter_files_v1)),
    )
    for witness, topics in witnesses:
        for topic, texts in topics.items():
            if texts is not None:
                claims[topic][witness] = texts
    misplaced = [
        (bstart, bend)
        for stage, bstart, bend in iter_rows(ast_files_v1.get("errors"), "stage", "bstart", "bend")
        if stage == "position" and bstart is not None and bend is not None
    ]
    for topic, by_witness in claims.items():
        first, *others = by_witness.values()
        # Most lists are equal, or there is only one.
        if any(other != first for other in others):
            yield from _topic_disagreements(topic, by_witness, misplaced)


def _topic_disagreements(
    topic: str, claims: dict[str, Sequence[str]], misplaced: Sequence[tuple[int, int]]
) -> Iterator[Disagreement]:
    """Yield the disputed positions of a topic that are none of the exceptions."""
    for position, disputed in _disputes(claims).items():
        details = {witness: ", ".join(sorted(disputed.get(witness, ()))) or NOTHING for witness in claims}
        if _is_agreed(disputed, claims) or _is_misplaced(disputed, claims, position, misplaced):
            continue
        # The compiler drops dead code, so bytecode may lack functions that symtable has.
        if topic == "parameters" and "bytecode" not in disputed:
            continue
        about = f"{topic} of {position.subject}" if position.subject else topic
        statements = "; ".join(f"{witness}: {text}" for witness, text in details.items())
        yield Disagreement(
            "info" if topic == "parse_outcome" else "warning",
            topic,
            position.bstart,
            position.bend,
            f"the witnesses differ about {about}: {statements}",
            details,
        )


def _disputes(claims: dict[str, Sequence[str]]) -> dict[_Position, dict[str, set[str]]]:
    """Return the disputed statements by position and witness."""
    agreed = set.intersection(*map(set, claims.values()))
    disputes: dict[_Position, dict[str, set[str]]] = {}
    for witness, texts in claims.items():
        for claim in texts:
            if claim not in agreed:
                begin, end, subject, statement = claim.split("|", 3)
                position = _Position(int(begin) if begin else None, int(end) if end else None, subject)
                disputes.setdefault(position, {}).setdefault(witness, set()).add(statement)
    return disputes


def _is_agreed(disputed: dict[str, set[str]], claims: dict[str, Any]) -> bool:
    """Return whether all witnesses claim the same kind of object, and at most one name is known."""
    statements = set().union(*disputed.values())
    kinds = {statement.split(" ", 1)[0] for statement in statements}
    known = {statement for statement in statements if not statement.endswith(UNKNOWN)}
    return disputed.keys() == claims.keys() and len(kinds) == 1 and len(known) <= 1


def _is_misplaced(
    disputed: dict[str, set[str]],
    claims: dict[str, Any],
    position: _Position,
    misplaced: Sequence[tuple[int, int]],
) -> bool:
    """Return whether only `ast` is missing, because the position is in an f-string that CPython misplaces."""
    at = position.bstart
    if at is None or "ast" not in claims or "ast" in disputed:
        return False
    return any(begin <= at < end for begin, end in misplaced)
