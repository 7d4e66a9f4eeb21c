"""Positions that could not be placed: `span_errors_v1`, one row per position; none on healthy input.

A SCIP index that is older than the sources says that `x` stands in line 10, columns 0 to 1, of a file that
has two lines:

    line_out_of_range    scip    occurrence    9:0-9:1 utf16    the file has no such line

| kind | what is wrong |
|---|---|
| `missing_file` | the repository has no file of the document's path; its id is the one it would have |
| `unreadable_file` | it has, but no text could be read from it |
| `malformed_range` | there is no range, or it ends before it begins |
| `line_out_of_range` | the file has no such line |
| `unknown_encoding` | nobody tells what the columns count |
| `foreign_encoding` | the tool read the file as UTF-8, which it is not |
| `column_out_of_range` | the line has no such column, or it is inside of a character |
| `misplaced` | the tree does not fit the text: LibCST's, or CPython's of an f-string before 3.12 |

The span is the nearest place known: the line where a range should begin, the f-string of an expression.
Equal positions of one witness and subject are one row. LibCST writes the place of a syntax error into its
message; if the file has no such place, that is a row too.

What cannot be told is left out: instructions with a line and no span, since CPython also writes such
positions for code it made up; and places of CPython's errors, of which only those that exist are kept.

Tests: `tests/unit/normalize/test_span_errors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codeanatomy.ids import stable_id
from codeanatomy.normalize.file_view import Lines, Place, Said, each

MESSAGES = {
    "missing_file": "the repository has no such file",
    "unreadable_file": "no text could be read from the file",
    "malformed_range": "the range is absent, has too few numbers or ends before it begins",
    "line_out_of_range": "the file has no such line",
    "unknown_encoding": "nobody tells in which unit the columns count",
    "foreign_encoding": "the file was read as UTF-8, which it is not",
    "column_out_of_range": "the line has no such column, or it is inside of a character",
}
# How LibCST's messages tell a place: line from 1, column from 0 in characters.
LIBCST_PLACE = re.compile(r"error at ([0-9]{1,9}):([0-9]{1,9}): ")


class SpanError(NamedTuple):
    """A row without its place and id; equal ones are one."""

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
    place: Place,
    *,
    repo_files_v1: Said,
    file_line_index_v1: Lines,
    ast_files_v1: Said,
    libcst_files_v1: Said,
    scip_index_v1: Sequence[Said],
) -> list[dict[str, Any]]:
    """The positions of all witnesses of a file that could not be placed."""
    found = dict.fromkeys(
        (
            *(
                _explained(unplaced, repo_files_v1, file_line_index_v1)
                for document in scip_index_v1
                for unplaced in _scip_positions(document)
            ),
            *(
                _explained(unplaced, repo_files_v1, file_line_index_v1)
                for unplaced in _libcst_positions(libcst_files_v1)
            ),
            *_misplaced(ast_files_v1.get("errors"), "ast", "expression"),
            *_misplaced(libcst_files_v1.get("parse_errors"), "libcst", "tree"),
        )
    )
    return [
        {
            **place._asdict(),
            "span_error_id": stable_id("span_error", place.repo_id, place.file_id, *row),
            **row._asdict(),
        }
        for row in found
    ]


def _scip_positions(document: Said) -> Iterator[_Unplaced]:
    """Ranges without a span; only what a definition encloses may lack a range."""
    unit, is_missing = document.get("position_encoding"), bool(document.get("is_missing"))
    occurrences, diagnostics = document.get("occurrences"), document.get("diagnostics")
    lists = (
        (occurrences, "", "occurrence", False),
        (occurrences, "enclosing_", "enclosing_range", True),
        (diagnostics, "", "diagnostic", False),
    )
    for columns, prefix, subject, is_optional in lists:
        fields = (f"{prefix}{name}" for name in ("start_line", "start_col", "end_line", "end_col", "bstart"))
        for line, col, end_line, end_col, bstart in each(columns, *fields):
            if bstart is None and not (is_optional and line is None):
                yield _Unplaced("scip", subject, line, col, end_line, end_col, unit, is_missing)


def _libcst_positions(said: Said) -> Iterator[_Unplaced]:
    """Places in messages that are not in the file."""
    for bstart, message in each(said.get("parse_errors"), "bstart", "message"):
        told = LIBCST_PLACE.search(message or "") if bstart is None else None
        if told is not None:
            line, col = int(told[1]) - 1, int(told[2])
            yield _Unplaced("libcst", "error", line, col, None, None, "utf32", is_missing=False)


def _explained(unplaced: _Unplaced, listed: Said, lines: Lines) -> SpanError:
    """A position with what is wrong with it, and the line where it should begin."""
    kind = _kind(unplaced, listed, lines)
    witness, subject, line, col, end_line, end_col, unit, _ = unplaced
    bstart, bend = lines.span(line)
    return SpanError(kind, witness, subject, line, col, end_line, end_col, unit, bstart, bend, MESSAGES[kind])


def _kind(unplaced: _Unplaced, listed: Said, lines: Lines) -> str:
    known = [line for line in (unplaced.start_line, unplaced.end_line) if line is not None]
    if unplaced.is_missing:
        return "missing_file"
    if listed.get("skipped_reason") is not None:
        return "unreadable_file"
    if not known:
        return "malformed_range"
    # A file without text has no lines in the index, and one to a parser.
    if max(known) >= (lines.count or 1):
        return "line_out_of_range"
    if unplaced.col_unit is None:
        return "unknown_encoding"
    if unplaced.witness == "scip" and listed.get("encoding") not in ("utf-8", None):
        return "foreign_encoding"
    return "column_out_of_range"


def _misplaced(problems: Any, witness: str, subject: str) -> Iterator[SpanError]:
    """Problems of a witness whose own positions do not fit the text; what those were is not kept."""
    for stage, error, bstart, bend, message in each(
        problems, "stage", "error_type", "bstart", "bend", "message"
    ):
        if stage == "position" or error == "Misplaced":
            yield SpanError(
                "misplaced", witness, subject, None, None, None, None, None, bstart, bend, message
            )
