"""What a witness says of a file: cells for its row, and the problems it met.

A witness is a function `(Source, ExtractOptions) -> Testimony`, named after its table. Cells are keyed by the
table's columns. A list of structs is a table of its own, kept by columns (one Python list per field), because
Arrow takes it that way without an object per row:

    Testimony({"nodes": {"ast_id": [0, 1], "kind": ["Module", "Pass"], ...}, "calls": {...}})

A cell that is left out is null: a list is null where the witness could not read the file, empty where it
looked and found nothing. The columns every row has (file, digest, witness version, errors) are filled in by
the worker. A witness does not raise; what it raises nevertheless becomes a problem too, see `heard`.

Tests: `tests/test_testimony.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from codeanatomy.extract.source import Source
from codeanatomy.options import ExtractOptions
from codeanatomy.spans import col_to_byte

Cells: TypeAlias = Mapping[str, Any]
Severity = Literal["error", "warning", "info", "hint"]
# Of a message; parsers quote the source they fail on.
MESSAGE_CHARS = 1000


class Problem(Struct, frozen=True):
    """An error or warning of a witness; the fields of `ERROR_FIELDS` in `catalog.columns`."""

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


class Testimony(Struct, frozen=True):
    """Cells of a row, and what went wrong."""

    cells: Cells
    problems: tuple[Problem, ...] = ()


# Steps that are not to be done again, by the number of the file in its chunk and of the step.
Silenced: TypeAlias = dict[int, dict[int, Problem]]
WitnessFunction: TypeAlias = Callable[[Source, ExtractOptions], Testimony]


class Witness(Struct, frozen=True):
    """A table, the function that makes its rows, and what the rows depend on besides the bytes."""

    table: str
    speak: WitnessFunction
    # Library, grammar and Python, such as "libcst 1.9.0, python 3.11".
    version: str
    # Larger files are not shown to it; the name of an option.
    max_size: str = "max_file_size"


def heard(witness: Witness, source: Source, options: ExtractOptions) -> Testimony:
    """What the witness says; silence, with the reason, where it fails."""
    limit = getattr(options, witness.max_size)
    if len(source.raw) > limit:
        said = f"{len(source.raw)} bytes are more than extract.{witness.max_size} = {limit}"
        return Testimony({}, (Problem("error", "read", "too_large", said),))
    try:
        return witness.speak(source, options)
    # Never raising is the contract: a bug of a parser, or of ours, costs one row.
    except Exception as problem:  # noqa: BLE001
        return Testimony({}, (failure(source, "extract", problem),))


def failure(source: Source, stage: str, error: BaseException, severity: Severity = "error") -> Problem:
    """An exception or warning as a problem; a SyntaxError says where."""
    message, line, bstart, col = str(error), None, None, None
    if isinstance(error, SyntaxError):
        message = error.msg or message
        line = error.lineno if error.lineno and 1 <= error.lineno <= len(source.line_starts) else None
        if line is not None and error.offset is not None and error.offset >= 1:
            # CPython counts characters from 1 there, and may point after the end.
            col = col_to_byte(source.line_text(line), error.offset - 1, "utf32")
            bstart = None if col is None else source.at(line, col)
    kind = type(error).__name__
    return Problem(severity, stage, kind, message[:MESSAGE_CHARS], col, bstart, bstart, line)
