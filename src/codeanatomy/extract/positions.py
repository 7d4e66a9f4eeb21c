r"""Convert positions of other tools to byte offsets in one file; each line is converted once.

>>> from codeanatomy.sources.source_file import decode
>>> source = decode("a.py", 'e="😀"; é = e\n'.encode())
>>> positions = PositionConverter(source, "utf16", None)
>>> positions.offset_at(0, 8), positions.offset_at(0, 4), positions.offset_at(0, 99)
(10, None, None)

Lines and columns are counted from 0, columns in the tool's unit. A position outside of the file gives None;
the caller records it in `malformed` or `unplaced`, and `problems` reports both. The tools read files as
UTF-8: in a file of another encoding, only lines with the same bytes in both can be converted.

Tests: `tests/unit/extract/test_scip_index.py`, `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codeanatomy.extract.evidence import Problem
from codeanatomy.sources.source_file import NEWLINE, Source


def lines_of(line_starts: Sequence[int] | np.ndarray[Any, Any], offsets: Sequence[int]) -> list[int]:
    """Return the lines of byte offsets, counted from 1.

    >>> lines_of([0, 4, 9], [0, 3, 4, 20])
    [1, 1, 2, 3]
    """
    # For 300 offsets a quarter of the time of `bisect_right` for each; for 3 it takes 1 microsecond more.
    lines: list[int] = np.searchsorted(line_starts, offsets, side="right").tolist()
    return lines


class PositionConverter:
    """Offsets of the columns of a file; `bom_columns` are the columns of a byte order mark, if known."""

    def __init__(self, source: Source | None, encoding: str | None, bom_columns: int | None) -> None:
        self.source = source
        self.encoding = encoding
        self.bom_columns = bom_columns
        # By line: the offset of each column, None inside a character; empty if columns are not known.
        self.lines: dict[int, Sequence[int | None]] = {}
        self.raw_lines: list[bytes] | None = None
        self.malformed: list[list[int]] = []
        self.unplaced: list[tuple[int, ...]] = []

    def offset_at(self, line: int, col: int) -> int | None:
        """Return the byte offset of a line and column, both counted from 0; the end of a line is valid."""
        columns = self.lines.get(line)
        if columns is None:
            columns = self.lines[line] = self._line_offsets(line)
        return columns[col] if col < len(columns) else None

    def problems(self) -> tuple[Problem, ...]:
        """Return at most one problem of each kind; the ranges concerned have null spans."""
        problems = []
        if self.malformed:
            message = f"{len(self.malformed)} ranges are malformed, the first: {self.malformed[0]}"
            problems.append(Problem("warning", "convert", "span", message))
        if self.unplaced and self.source is not None:
            first = list(self.unplaced[0])
            message = f"{len(self.unplaced)} ranges cannot be placed in the file, the first: {first}"
            problems.append(Problem("warning", "convert", "span", message))
        return tuple(problems)

    def _line_offsets(self, line: int) -> Sequence[int | None]:
        source = self.source
        if source is None or line >= len(source.line_starts):
            return ()
        start = source.line_starts[line]
        end = source.line_starts[line + 1] if line + 1 < len(source.line_starts) else len(source.utf8)
        text = source.utf8[start:end]
        columns: Sequence[int | None] = ()
        if text.isascii() and self._is_same_in_file(line, text):
            columns = range(start, end + 1)
        elif source.encoding == "utf-8":
            columns = list(_offsets(text, start, self.encoding))
        if line == 0 and source.has_bom:
            return [*[0] * self.bom_columns, *columns] if self.bom_columns is not None else ()
        return columns

    def _is_same_in_file(self, line: int, text: bytes) -> bool:
        """Return whether a line has the same bytes in the file, which the tool reads as UTF-8."""
        if self.source is None or self.source.encoding == "utf-8":
            return True
        if self.raw_lines is None:
            self.raw_lines = NEWLINE.split(self.source.raw)
        return len(self.raw_lines) == len(self.source.line_starts) and self.raw_lines[line] == text.rstrip(
            b"\r\n"
        )


def _offsets(text: bytes, start: int, encoding: str | None) -> Iterator[int | None]:
    """Yield the offset of each column of a line, its end included; none if the unit is not known."""
    if encoding is None:
        return
    offset = start
    for char in text.decode("utf-8"):
        size = len(char.encode("utf-8"))
        units = {"utf8": size, "utf16": 1 + (char > "\uffff"), "utf32": 1}[encoding]
        yield offset
        yield from [None] * (units - 1)
        offset += size
    yield offset
