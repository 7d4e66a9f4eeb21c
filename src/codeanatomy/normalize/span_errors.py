"""Report positions that could not be converted to byte spans: `span_errors_v1`, none on healthy input.

A SCIP index that is older than the sources places `x` in line 10, columns 0 to 1, of a file that has two
lines:

    line_out_of_range    scip    occurrence    9:0-9:1 utf16    the file has no such line

| kind | problem |
|---|---|
| `missing_file` | the repository has no file of the document's path; its id is the one it would have |
| `unreadable_file` | it has, but no text could be read from it |
| `malformed_range` | there is no range, or it ends before it begins |
| `line_out_of_range` | the file has no such line |
| `unknown_encoding` | the unit of the columns is not specified |
| `foreign_encoding` | the tool read the file as UTF-8, which it is not |
| `column_out_of_range` | the line has no such column, or it is inside of a character |
| `misplaced` | the tree does not fit the text: LibCST's, or CPython's of an f-string before 3.12 |

The span is the nearest known one: the line where a range should begin, the f-string of an expression.
Equal positions of one witness and subject are one row. LibCST writes the position of a syntax error into its
message; if the file has no such position, that is a row too.

Undecidable cases are left out: instructions with a line and no span, since CPython also writes such positions
for code it generates; and positions of CPython's errors, of which only those that exist are kept.

Tests: `tests/unit/normalize/test_span_errors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codeanatomy.file_view import FileKey, Lines, Row, iter_rows
from codeanatomy.node_ids import key_of, number_text

MESSAGES = {
    "missing_file": "the repository has no such file",
    "unreadable_file": "no text could be read from the file",
    "malformed_range": "the range is absent, has too few numbers or ends before it begins",
    "line_out_of_range": "the file has no such line",
    "unknown_encoding": "nobody tells in which unit the columns count",
    "foreign_encoding": "the file was read as UTF-8, which it is not",
    "column_out_of_range": "the line has no such column, or it is inside of a character",
}
# The position in LibCST's messages: line from 1, column from 0 in characters.
LIBCST_POSITION = re.compile(r"error at ([0-9]{1,9}):([0-9]{1,9}): ")


class SpanError(NamedTuple):
    """A row without the columns of the file and the id; equal ones are one row."""

    span_error_kind: str
    witness: str
    subject: str
    start_line: int | None
    start_col: int | None
    end_line: int | None
    end_col: int | None
    col_unit: str | None
    bstart: int | None
    bend: int | None
    message: str | None


class _Unplaced(NamedTuple):
    witness: str
    subject: str
    start_line: int | None
    start_col: int | None
    end_line: int | None
    end_col: int | None
    col_unit: str | None
    is_missing: bool


def span_errors_v1(
    file: FileKey,
    *,
    repo_files_v1: Row,
    file_line_index_v1: Lines,
    ast_files_v1: Row,
    libcst_files_v1: Row,
    scip_index_v1: Sequence[Row],
) -> list[dict[str, Any]]:
    """Return the positions of all witnesses of a file that could not be converted."""
    errors = dict.fromkeys(
        (
            *(
                _span_error(unplaced, repo_files_v1, file_line_index_v1)
                for document in scip_index_v1
                for unplaced in _scip_positions(document)
            ),
            *(
                _span_error(unplaced, repo_files_v1, file_line_index_v1)
                for unplaced in _libcst_positions(libcst_files_v1)
            ),
            *_misplaced(ast_files_v1.get("errors"), "ast", "expression"),
            *_misplaced(libcst_files_v1.get("parse_errors"), "libcst", "tree"),
        )
    )
    key = key_of(file.file_id)
    return [
        {**file._asdict(), "span_error_id": f"span_error:{key}.{number_text(number)}", **row._asdict()}
        for number, row in enumerate(errors)
    ]


def _scip_positions(document: Row) -> Iterator[_Unplaced]:
    """Yield the ranges without a span; only the enclosing range of an occurrence may be absent."""
    unit, is_missing = document.get("position_encoding"), bool(document.get("is_missing"))
    occurrences, diagnostics = document.get("occurrences"), document.get("diagnostics")
    lists = (
        (occurrences, "", "occurrence", False),
        (occurrences, "enclosing_", "enclosing_range", True),
        (diagnostics, "", "diagnostic", False),
    )
    for columns, prefix, subject, is_optional in lists:
        fields = (f"{prefix}{name}" for name in ("start_line", "start_col", "end_line", "end_col", "bstart"))
        for line, col, end_line, end_col, bstart in iter_rows(columns, *fields):
            if bstart is None and not (is_optional and line is None):
                yield _Unplaced("scip", subject, line, col, end_line, end_col, unit, is_missing)


def _libcst_positions(libcst: Row) -> Iterator[_Unplaced]:
    """Yield the positions in error messages that are not in the file."""
    for bstart, message in iter_rows(libcst.get("parse_errors"), "bstart", "message"):
        position = LIBCST_POSITION.search(message or "") if bstart is None else None
        if position is not None:
            line, col = int(position[1]) - 1, int(position[2])
            yield _Unplaced("libcst", "error", line, col, None, None, "utf32", is_missing=False)


def _span_error(unplaced: _Unplaced, listed: Row, lines: Lines) -> SpanError:
    """Classify a position that has no span; its span is the line where it should begin."""
    kind = _kind(unplaced, listed, lines)
    witness, subject, line, col, end_line, end_col, unit, _ = unplaced
    bstart, bend = lines.span(line)
    return SpanError(kind, witness, subject, line, col, end_line, end_col, unit, bstart, bend, MESSAGES[kind])


def _kind(unplaced: _Unplaced, listed: Row, lines: Lines) -> str:
    known = [line for line in (unplaced.start_line, unplaced.end_line) if line is not None]
    if unplaced.is_missing:
        return "missing_file"
    if listed.get("skipped_reason") is not None:
        return "unreadable_file"
    if not known:
        return "malformed_range"
    # A file without text has no lines in the index, but one line for a parser.
    if max(known) >= (lines.count or 1):
        return "line_out_of_range"
    if unplaced.col_unit is None:
        return "unknown_encoding"
    if unplaced.witness == "scip" and listed.get("encoding") not in ("utf-8", None):
        return "foreign_encoding"
    return "column_out_of_range"


def _misplaced(problems: Any, witness: str, subject: str) -> Iterator[SpanError]:
    """Yield the errors of a witness whose own positions do not fit the text; those are not recorded."""
    for stage, error, bstart, bend, message in iter_rows(
        problems, "stage", "error_type", "bstart", "bend", "message"
    ):
        if stage == "position" or error == "Misplaced":
            yield SpanError(
                "misplaced", witness, subject, None, None, None, None, None, bstart, bend, message
            )
