"""What a witness says of a file: cells for its row, and the problems it met.

A witness is a function `(Source, ExtractOptions) -> ExtractorResult`, named after its table. Cells are keyed by the
table's columns. A list of structs is a table of its own, kept by columns (one Python list per field), because
Arrow takes it that way without an object per row:

    ExtractorResult({"nodes": {"ast_id": [0, 1], "kind": ["Module", "Pass"], ...}, "calls": {...}})

A cell that is left out is null: a list is null where the witness could not read the file, empty where it
looked and found nothing. The columns every row has (file, digest, witness version, errors) are filled in by
the worker. A witness does not raise; what it raises nevertheless becomes a problem too, see `heard`.

Tests: `tests/unit/extract/test_evidence.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.source_file import Source
from codeanatomy.spans import col_to_byte

Cells: TypeAlias = Mapping[str, Any]
Severity = Literal["error", "warning", "info", "hint"]
# Of a message; parsers quote the source they fail on.
MESSAGE_CHARS = 1000


class Problem(Struct, frozen=True):
    """An error or warning of a witness; the fields of `ERROR_FIELDS` in `catalog.tables.columns`."""

    severity: Severity
    stage: str
    error_type: str
    message: str
    # Bytes between the start of the line and the place.
    col: int | None = None
    bstart: int | None = None
    bend: int | None = None
    # Counted from 1.
    line: int | None = None


class ExtractorResult(Struct, frozen=True):
    """Cells of a row, and what went wrong."""

    cells: Cells
    problems: tuple[Problem, ...] = ()


# Steps that are not to be done again, by the number of the file in its chunk and of the step.
SkippedSteps: TypeAlias = dict[int, dict[int, Problem]]
ExtractFunction: TypeAlias = Callable[[Source, ExtractOptions], ExtractorResult]


class Extractor(Struct, frozen=True):
    """A table, the function that makes its rows, and what the rows depend on besides the bytes."""

    table: str
    speak: ExtractFunction
    # Library, grammar and Python, such as "libcst 1.9.0, python 3.11".
    version: str
    # Larger files are not shown to it; the name of an option.
    max_size: str = "max_file_size"


def run_extractor(witness: Extractor, source: Source, options: ExtractOptions) -> ExtractorResult:
    """What the witness says; silence, with the reason, where it fails."""
    limit = getattr(options, witness.max_size)
    if len(source.raw) > limit:
        said = f"{len(source.raw)} bytes are more than extract.{witness.max_size} = {limit}"
        return ExtractorResult({}, (Problem("error", "read", "too_large", said),))
    try:
        return witness.speak(source, options)
    # Never raising is the contract: a bug of a parser, or of ours, costs one row.
    except Exception as problem:  # noqa: BLE001
        return ExtractorResult({}, (problem_from(source, "extract", problem),))


def problem_from(source: Source, stage: str, error: BaseException, severity: Severity = "error") -> Problem:
    """An exception or warning as a problem; a SyntaxError, of text and not of bytes, says where."""
    message, line, col = str(error), None, None
    if isinstance(error, SyntaxError):
        message = error.msg or message
        line, col = _place(source, error)
    bstart = None if line is None or col is None else source.offset_at(line, col)
    kind = type(error).__name__
    return Problem(severity, stage, kind, message[:MESSAGE_CHARS], col, bstart, bstart, line)


def _place(source: Source, error: SyntaxError) -> tuple[int | None, int | None]:
    """Line and byte column of what CPython points at; it counts both from 1."""
    text = source.line_text(error.lineno or 0)
    if text is None or error.offset is None:
        return None if text is None else error.lineno, None
    col = _column(error, error.offset - 1, text)
    return error.lineno, col if col_to_byte(text, col, "utf8") is not None else None


def _column(error: SyntaxError, col: int, line_text: str) -> int | None:
    """The column in bytes; null where nobody knows."""
    if error.text is None:
        # The compiler counts bytes; in future statements, which have no end, from 0 or from 1.
        return None if error.end_offset is None else col
    before, _, line = error.text.rstrip("\r\n").rpartition("\n")
    if line != line_text.rstrip("\r\n"):
        # Before 3.12: a part of a formatted string, looked at by itself.
        return None
    if error.msg.startswith("leading zeros in decimal integer literals") or error.text.isascii():
        return col
    # The parser counts characters; but if its text begins some lines before, those of the first line.
    return None if before else col_to_byte(line_text, col, "utf32")
