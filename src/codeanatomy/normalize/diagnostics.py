"""Collect the diagnostics of all witnesses of a file: `diagnostics_norm_v1`, one row per diagnostic.

`print 1` in a file of its own is rejected by CPython and LibCST, while tree-sitter knows Python 2:

    cpython       syntax_error         1:0  Missing parentheses in call to 'print'. ...
                                            ast: parse, bytecode: compile, symtable: symtable
    libcst        parser_syntax_error  1:6  parser error: error at 1:6: expected one of ...
    disagreement  parse_outcome             ast: rejects, libcst: rejects, tree_sitter: accepts

There are five sources, distinguished by `diag_kind`:

- `cpython`: errors and warnings of ast, symtable and bytecode; files that could not be read at all, which
  CPython would reject first; and bytecode of an interpreter that `flow.opcodes` does not know.
- `libcst`: why it did not read the file.
- `tree_sitter`: text that fits no rule, tokens that are missing, parses and searches that were given up.
- `scip`: diagnostics of the indexer, and errors while reading its document.
- `disagreement`: see `disagreements`.

The code is the witness' own name for the problem in snake case: `SyntaxError` is `syntax_error`, `too_large`
stays; codes of an indexer are kept unchanged. A diagnostic that several witnesses report, or one reports
twice, is one row; its details name the witnesses and the stage at which each failed.
Positions that could not be converted are rows of `span_errors_v1`, and diagnostics only where they cost more:
the whole tree of LibCST, a part of a SCIP document. `rules` adds the diagnostics of the rules themselves.

Lines count from 1 and columns are bytes, both computed from the span; where there is none, they are the
witness' own. A span that ends with a newline ends in the line of that newline. Tests:
`tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codeanatomy.catalog.tables.columns import SEVERITIES
from codeanatomy.catalog.tables.extract import DELIBERATE_SKIPS
from codeanatomy.file_view import FileKey, Lines, Row, iter_rows
from codeanatomy.normalize.disagreements import disagreements
from codeanatomy.normalize.flow.opcodes import KNOWN_VERSIONS

# Length of the quotation in the message about a text that fits no rule.
QUOTED_CHARS = 60
CASE_BOUNDARY = re.compile("(?<=[a-z0-9])(?=[A-Z])")
SPACES = re.compile(r"[ \t\n\x0b\f\r]+")


class DiagnosticKey(NamedTuple):
    """The fields that identify a diagnostic: reports that are equal in them are one row."""

    kind: str
    code: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    message: str | None


class ReportedDiagnostic(NamedTuple):
    """A diagnostic of one witness; its line and column are used only without a span."""

    key: DiagnosticKey
    severity: str | None
    col: int | None
    details: Mapping[str, str]


def diagnostics_norm_v1(
    file: FileKey,
    *,
    repo_files_v1: Row,
    file_line_index_v1: Lines,
    ast_files_v1: Row,
    libcst_files_v1: Row,
    tree_sitter_files_v1: Row,
    bytecode_files_v1: Row,
    symtable_files_v1: Row,
    scip_index_v1: Sequence[Row],
) -> list[dict[str, Any]]:
    """Return the diagnostics of all witnesses of a file, and their disagreements; `rules` adds their ids."""
    differences = disagreements(
        ast_files_v1=ast_files_v1,
        libcst_files_v1=libcst_files_v1,
        tree_sitter_files_v1=tree_sitter_files_v1,
        bytecode_files_v1=bytecode_files_v1,
        symtable_files_v1=symtable_files_v1,
    )
    reports: dict[DiagnosticKey, list[ReportedDiagnostic]] = {}
    for report in (
        *_unread_file(repo_files_v1),
        *_errors(ast_files_v1.get("errors"), "cpython", "ast"),
        *_errors(symtable_files_v1.get("errors"), "cpython", "symtable"),
        *_errors(bytecode_files_v1.get("errors"), "cpython", "bytecode"),
        *_unknown_bytecode(bytecode_files_v1),
        *_errors(libcst_files_v1.get("parse_errors"), "libcst", "libcst"),
        *_errors(tree_sitter_files_v1.get("parse_errors"), "tree_sitter", "tree_sitter"),
        *_error_nodes(tree_sitter_files_v1.get("errors")),
        *_missing_nodes(tree_sitter_files_v1.get("missing")),
        # A document about a file that the repository lacks has no file to report on.
        *(
            report
            for document in scip_index_v1
            if not document.get("is_missing")
            for report in (
                *_errors(document.get("errors"), "scip", "scip"),
                *_scip_diagnostics(document.get("diagnostics")),
            )
        ),
        *(
            _diagnostic(
                "disagreement",
                difference.severity,
                difference.code,
                difference.message,
                difference.details,
                difference.bstart,
                difference.bend,
            )
            for difference in differences
        ),
    ):
        reports.setdefault(report.key, []).append(report)
    return [_row(file, key, same, file_line_index_v1) for key, same in reports.items()]


# The sources of diagnostics.


def _unread_file(listed: Row) -> Iterator[ReportedDiagnostic]:
    reason = listed.get("skipped_reason")
    if reason is not None and reason not in DELIBERATE_SKIPS:
        message = f"the file could not be read: {reason}"
        yield _diagnostic("cpython", "error", _code(reason), message, {"stage": "read"})


def _errors(errors: Any, kind: str, witness: str) -> Iterator[ReportedDiagnostic]:
    """Yield the errors that an extractor recorded itself."""
    names = ("severity", "stage", "error_type", "message", "col", "bstart", "bend", "line")
    for severity, stage, error, message, col, bstart, bend, line in iter_rows(errors, *names):
        if stage is not None and stage != "position":
            details = {witness: stage, "error_type": error}
            yield _diagnostic(kind, severity, _code(error), message, details, bstart, bend, line, col)


def _unknown_bytecode(bytecode: Row) -> Iterator[ReportedDiagnostic]:
    version = bytecode.get("python_version")
    is_known = version is None or ".".join(version.split(".")[:2]) in KNOWN_VERSIONS
    if bytecode.get("code_objects") is not None and not is_known:
        message = (
            f"the bytecode of Python {version} is not known: control and data flow of the file are missing"
        )
        yield _diagnostic("cpython", "error", "unknown_bytecode", message, {"python_version": version})


def _error_nodes(nodes: Any) -> Iterator[ReportedDiagnostic]:
    for parent, text, bstart, bend in iter_rows(nodes, "parent_kind", "text", "bstart", "bend"):
        message = None if text is None else f"fits no rule: {SPACES.sub(' ', text)[:QUOTED_CHARS]}"
        details = {"parent_kind": parent}
        yield _diagnostic("tree_sitter", "error", "error_node", message, details, bstart, bend)


def _missing_nodes(nodes: Any) -> Iterator[ReportedDiagnostic]:
    for kind, parent, bstart, bend in iter_rows(nodes, "kind", "parent_kind", "bstart", "bend"):
        details = {"parent_kind": parent}
        yield _diagnostic("tree_sitter", "error", "missing_node", f"missing: {kind}", details, bstart, bend)


def _scip_diagnostics(diagnostics: Any) -> Iterator[ReportedDiagnostic]:
    names = ("severity", "code", "message", "source", "tags", "start_line", "bstart", "bend")
    for severity, code, message, source, tags, line, bstart, bend in iter_rows(diagnostics, *names):
        yield _diagnostic(
            "scip",
            # Later versions of the protocol may have more severities.
            severity if severity in SEVERITIES else "info",
            "scip" if code is None else code,
            next((text for text in (message, code) if text is not None), "the indexer gave no message"),
            {"source": source, "tags": ", ".join(tags or ()) or None},
            bstart,
            bend,
            None if line is None else line + 1,
        )


def _diagnostic(
    kind: str,
    severity: str | None,
    code: str | None,
    message: str | None,
    details: Mapping[str, str | None],
    bstart: int | None = None,
    bend: int | None = None,
    line: int | None = None,
    col: int | None = None,
) -> ReportedDiagnostic:
    if bstart is not None:
        line = col = None
    present = {key: value for key, value in details.items() if value is not None}
    return ReportedDiagnostic(DiagnosticKey(kind, code, bstart, bend, line, message), severity, col, present)


def _code(name: str | None) -> str | None:
    """Return the error class or reason that a witness names, in snake case."""
    return None if name is None else CASE_BOUNDARY.sub("_", name).lower()


# Rows.


def _row(
    file: FileKey, key: DiagnosticKey, same: Sequence[ReportedDiagnostic], lines: Lines
) -> dict[str, Any]:
    """Return the row of a diagnostic from all equal reports of it."""
    kind, code, bstart, bend, line, message = key
    col = min((report.col for report in same if report.col is not None), default=None)
    first = last = (line, col)
    if bstart is not None:
        first_line, first_byte = lines.at(bstart)
        last_line, last_byte = lines.at(bstart if bend is None else max(bstart, bend - 1))
        first = (first_line, bstart - first_byte)
        last = (last_line, None if bend is None else bend - last_byte)
    return {
        **file._asdict(),
        "diag_kind": kind,
        "diag_severity": min((report.severity for report in same if report.severity), key=SEVERITIES.index),
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


def _details(same: Sequence[ReportedDiagnostic]) -> dict[str, str]:
    """Merge the details of all reports; several values of a key are joined."""
    values: dict[str, set[str]] = {}
    for report in same:
        for key, value in report.details.items():
            values.setdefault(key, set()).add(value)
    return {key: ", ".join(sorted(values[key])) for key in sorted(values)}
