"""Define the interface of an extractor: the cells of its row and its problems.

An extractor is a function `(Source, ExtractOptions) -> ExtractorResult`, named after its table. Cells are
keyed by the table's columns. A list of structs is stored by columns (one Python list per field), because
Arrow takes it that way without an object per row:

    ExtractorResult({"nodes": {"ast_id": [0, 1], "kind": ["Module", "Pass"], ...}, "calls": {...}})

A cell that is left out is null: a list is null where the extractor could not read the file, empty where the
file has no such item. The columns that every row has (file, digest, version of the extractor, errors) are
added by `extract.file_rows`. An extractor should not raise; an exception becomes a problem too, see
`run_extractor`.

Tests: `tests/unit/extract/test_evidence.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.newer_syntax import explain_newer_syntax
from codeanatomy.sources.source_file import Source
from codeanatomy.spans import col_to_byte

Cells: TypeAlias = Mapping[str, Any]
Severity = Literal["error", "warning", "info", "hint"]
# Limit for a message; parsers quote the source they fail on.
MESSAGE_CHARS = 1000


class Problem(Struct, frozen=True):
    """An error or warning of an extractor; has the fields of `ERROR_FIELDS` in `catalog.tables.columns`."""

    severity: Severity
    stage: str
    error_type: str
    message: str
    # Bytes between the start of the line and the position.
    col: int | None = None
    bstart: int | None = None
    bend: int | None = None
    # Counted from 1.
    line: int | None = None


class ExtractorResult(Struct, frozen=True):
    """The cells of a row, and its problems."""

    cells: Cells
    problems: tuple[Problem, ...] = ()


# Steps that failed before and are skipped, with the reason, by number of the file in its chunk and by step.
SkippedSteps: TypeAlias = dict[int, dict[int, Problem]]
ExtractFunction: TypeAlias = Callable[[Source, ExtractOptions], ExtractorResult]


class Extractor(Struct, frozen=True):
    """A table, the function that makes its rows, and the version the rows depend on besides the bytes."""

    table: str
    extract: ExtractFunction
    # Library, grammar and Python, such as "libcst 1.9.0, python 3.11".
    version: str
    # Name of the option with the limit: larger files are not extracted.
    max_size: str = "max_file_size"


def run_extractor(extractor: Extractor, source: Source, options: ExtractOptions) -> ExtractorResult:
    """Run an extractor on a file; if it fails, return no cells and the problem."""
    limit = getattr(options, extractor.max_size)
    if len(source.raw) > limit:
        message = f"{len(source.raw)} bytes are more than extract.{extractor.max_size} = {limit}"
        return ExtractorResult({}, (Problem("error", "read", "too_large", message),))
    try:
        return extractor.extract(source, options)
    # Never raising is the contract: a bug of a parser, or of ours, costs one row.
    except Exception as error:  # noqa: BLE001
        return ExtractorResult({}, (problem_from(source, "extract", error),))


def problem_from(source: Source, stage: str, error: BaseException, severity: Severity = "error") -> Problem:
    """Convert an exception or warning to a problem; a SyntaxError of parsed text has a position."""
    message, line, col = str(error), None, None
    if isinstance(error, SyntaxError):
        message = error.msg or message
        line, col = _position(source, error)
        newer = explain_newer_syntax(source.line_text(error.lineno or 0) or "", col, message)
        message = f"{message}: {newer}" if newer else message
    bstart = None if line is None or col is None else source.offset_at(line, col)
    kind = type(error).__name__
    return Problem(severity, stage, kind, message[:MESSAGE_CHARS], col, bstart, bstart, line)


def _position(source: Source, error: SyntaxError) -> tuple[int | None, int | None]:
    """Return line and byte column of the position of an error, both of which CPython counts from 1."""
    text = source.line_text(error.lineno or 0)
    if text is None or error.offset is None:
        return None if text is None else error.lineno, None
    col = _column(error, error.offset - 1, text)
    return error.lineno, col if col_to_byte(text, col, "utf8") is not None else None


def _column(error: SyntaxError, col: int, line_text: str) -> int | None:
    """Convert a column to bytes; None if its unit is not known."""
    if error.text is None:
        # The compiler counts bytes; in future statements, which have no end, from 0 or from 1.
        return None if error.end_offset is None else col
    before, _, line = error.text.rstrip("\r\n").rpartition("\n")
    if line != line_text.rstrip("\r\n"):
        # Before 3.12: a part of a formatted string, which was parsed separately.
        return None
    if error.msg.startswith("leading zeros in decimal integer literals") or error.text.isascii():
        return col
    # The parser counts characters of the line; if its text begins some lines before, of the first line.
    return None if before else col_to_byte(line_text, col, "utf32")
