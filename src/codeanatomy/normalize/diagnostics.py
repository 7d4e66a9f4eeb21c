"""What is wrong with a file, by whom: `diagnostics_norm_v1`, one row per complaint.

`print 1` in a file of its own is refused by CPython and LibCST, while tree-sitter knows Python 2:

    cpython       syntax_error         1:0  Missing parentheses in call to 'print'. ...
                                            ast: parse, bytecode: compile, symtable: symtable
    libcst        parser_syntax_error  1:6  parser error: error at 1:6: expected one of ...
    disagreement  parse_outcome             ast: rejects, libcst: rejects, tree_sitter: accepts

Five sources, told apart by `diag_kind`:

- `cpython`: errors and warnings of ast, symtable and bytecode; files that could not be read at all, which
  CPython would refuse first; and bytecode of an interpreter that `opcodes` does not know.
- `libcst`: why it did not read the file.
- `tree_sitter`: text that fits no rule, tokens that are missing, parses and searches that were given up.
- `scip`: what the indexer complained about, and what went wrong with reading its document.
- `disagreement`: see `disagreements`.

The code is the witness' own word in snake case: `SyntaxError` is `syntax_error`, `too_large` stays; codes of
an indexer are as it gives them. What several witnesses say, or one says twice, is one row; its details tell
who said it, and at which stage.
Positions that could not be placed are rows of `span_errors_v1`, and complaints only where they cost more: the
whole tree of LibCST, a part of a SCIP document. `rules` adds what the rules of single files have to say.

Lines count from 1 and columns are bytes, both found from the span; where there is none, they are the
witness' own. A span that ends with a newline ends in the line of that newline. Tests:
`tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codeanatomy.catalog.tables.columns import SEVERITIES
from codeanatomy.catalog.tables.extract import CHOSEN_REASONS
from codeanatomy.ids import stable_id
from codeanatomy.normalize.disagreements import disagreements
from codeanatomy.normalize.file_view import Lines, Place, Said, each
from codeanatomy.normalize.flow.opcodes import KNOWN_VERSIONS

# Of a text that fits no rule, what the message quotes.
QUOTED_CHARS = 60
HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
SPACES = re.compile(r"[ \t\n\x0b\f\r]+")


class Identity(NamedTuple):
    """Complaints that are equal in these are one."""

    kind: str
    code: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    message: str | None


class Complaint(NamedTuple):
    """What somebody has to say; line and column of a witness count only without a span."""

    identity: Identity
    severity: str | None
    col: int | None
    # Entries of the details.
    said: Mapping[str, str]


def diagnostics_norm_v1(
    place: Place,
    *,
    repo_files_v1: Said,
    file_line_index_v1: Lines,
    ast_files_v1: Said,
    libcst_files_v1: Said,
    tree_sitter_files_v1: Said,
    bytecode_files_v1: Said,
    symtable_files_v1: Said,
    scip_index_v1: Sequence[Said],
) -> list[dict[str, Any]]:
    """The complaints of all witnesses of a file, and those of the witnesses about each other."""
    differences = disagreements(
        ast_files_v1=ast_files_v1,
        libcst_files_v1=libcst_files_v1,
        tree_sitter_files_v1=tree_sitter_files_v1,
        bytecode_files_v1=bytecode_files_v1,
        symtable_files_v1=symtable_files_v1,
    )
    found: dict[Identity, list[Complaint]] = {}
    for complaint in (
        *_unread_file(repo_files_v1),
        *_errors(ast_files_v1.get("errors"), "cpython", "ast"),
        *_errors(symtable_files_v1.get("errors"), "cpython", "symtable"),
        *_errors(bytecode_files_v1.get("errors"), "cpython", "bytecode"),
        *_unknown_bytecode(bytecode_files_v1),
        *_errors(libcst_files_v1.get("parse_errors"), "libcst", "libcst"),
        *_errors(tree_sitter_files_v1.get("parse_errors"), "tree_sitter", "tree_sitter"),
        *_error_nodes(tree_sitter_files_v1.get("errors")),
        *_missing_nodes(tree_sitter_files_v1.get("missing")),
        # Of files that the repository lacks there is no file to complain about.
        *(
            complaint
            for document in scip_index_v1
            if not document.get("is_missing")
            for complaint in (
                *_errors(document.get("errors"), "scip", "scip"),
                *_scip_diagnostics(document.get("diagnostics")),
            )
        ),
        *(
            _complaint("disagreement", one.severity, one.code, one.message, one.details, one.bstart, one.bend)
            for one in differences
        ),
    ):
        found.setdefault(complaint.identity, []).append(complaint)
    return [_row(place, identity, same, file_line_index_v1) for identity, same in found.items()]


# The sources.


def _unread_file(listed: Said) -> Iterator[Complaint]:
    reason = listed.get("skipped_reason")
    if reason is not None and reason not in CHOSEN_REASONS:
        message = f"the file could not be read: {reason}"
        yield _complaint("cpython", "error", _code(reason), message, {"stage": "read"})


def _errors(errors: Any, kind: str, witness: str) -> Iterator[Complaint]:
    """The errors that a witness wrote down itself."""
    names = ("severity", "stage", "error_type", "message", "col", "bstart", "bend", "line")
    for severity, stage, error, message, col, bstart, bend, line in each(errors, *names):
        if stage is not None and stage != "position":
            said = {witness: stage, "error_type": error}
            yield _complaint(kind, severity, _code(error), message, said, bstart, bend, line, col)


def _unknown_bytecode(said: Said) -> Iterator[Complaint]:
    version = said.get("python_version")
    is_known = version is None or ".".join(version.split(".")[:2]) in KNOWN_VERSIONS
    if said.get("code_objects") is not None and not is_known:
        message = (
            f"the bytecode of Python {version} is not known: control and data flow of the file are missing"
        )
        yield _complaint("cpython", "error", "unknown_bytecode", message, {"python_version": version})


def _error_nodes(nodes: Any) -> Iterator[Complaint]:
    for parent, text, bstart, bend in each(nodes, "parent_kind", "text", "bstart", "bend"):
        message = None if text is None else f"fits no rule: {SPACES.sub(' ', text)[:QUOTED_CHARS]}"
        said = {"parent_kind": parent}
        yield _complaint("tree_sitter", "error", "error_node", message, said, bstart, bend)


def _missing_nodes(nodes: Any) -> Iterator[Complaint]:
    for kind, parent, bstart, bend in each(nodes, "kind", "parent_kind", "bstart", "bend"):
        said = {"parent_kind": parent}
        yield _complaint("tree_sitter", "error", "missing_node", f"missing: {kind}", said, bstart, bend)


def _scip_diagnostics(diagnostics: Any) -> Iterator[Complaint]:
    names = ("severity", "code", "message", "source", "tags", "start_line", "bstart", "bend")
    for severity, code, message, source, tags, line, bstart, bend in each(diagnostics, *names):
        yield _complaint(
            "scip",
            # The protocol may learn more severities than we know.
            severity if severity in SEVERITIES else "info",
            "scip" if code is None else code,
            next((text for text in (message, code) if text is not None), "the indexer gave no message"),
            {"source": source, "tags": ", ".join(tags or ()) or None},
            bstart,
            bend,
            None if line is None else line + 1,
        )


def _complaint(
    kind: str,
    severity: str | None,
    code: str | None,
    message: str | None,
    said: Mapping[str, str | None],
    bstart: int | None = None,
    bend: int | None = None,
    line: int | None = None,
    col: int | None = None,
) -> Complaint:
    if bstart is not None:
        line = col = None
    told = {key: value for key, value in said.items() if value is not None}
    return Complaint(Identity(kind, code, bstart, bend, line, message), severity, col, told)


def _code(word: str | None) -> str | None:
    """The class or reason that a witness names, in snake case."""
    return None if word is None else HUMP.sub("_", word).lower()


# From complaints to rows.


def _row(place: Place, identity: Identity, same: Sequence[Complaint], lines: Lines) -> dict[str, Any]:
    """One row per complaint, whoever made it and how often."""
    kind, code, bstart, bend, line, message = identity
    col = min((each.col for each in same if each.col is not None), default=None)
    first = last = (line, col)
    if bstart is not None:
        first_line, first_byte = lines.at(bstart)
        last_line, last_byte = lines.at(bstart if bend is None else max(bstart, bend - 1))
        first = (first_line, bstart - first_byte)
        last = (last_line, None if bend is None else bend - last_byte)
    return {
        **place._asdict(),
        "diag_id": stable_id("diag", place.repo_id, place.file_id, *identity),
        "diag_kind": kind,
        "diag_severity": min((each.severity for each in same if each.severity), key=SEVERITIES.index),
        "diag_code": code,
        "diag_line_start": first[0],
        "diag_col_start": first[1],
        "diag_line_end": last[0],
        "diag_col_end": last[1],
        "bstart": bstart,
        "bend": bend,
        "message": message,
        "details": _details(same),
    }


def _details(same: Sequence[Complaint]) -> dict[str, str]:
    """All entries as one map; several values of a key are joined."""
    values: dict[str, set[str]] = {}
    for complaint in same:
        for key, value in complaint.said.items():
            values.setdefault(key, set()).add(value)
    return {key: ", ".join(sorted(values[key])) for key in sorted(values)}
