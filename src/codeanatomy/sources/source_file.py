r"""Decode one source file and index its lines.

All extractors share the result, so they agree on the text, on lines and on the unit of positions. Bytes are
decoded as CPython does (BOM, then the PEP 263 cookie, else UTF-8). The canonical text has no BOM and its
newlines are untouched; that of a packaging file is Python (`sources.packaging_files`). Every span counts
bytes of its UTF-8 form. Lines end at `\n`, `\r\n` or a lone `\r`, and nowhere else: a form feed or U+2028 is
part of its line.

>>> source = decode("a.py", "# coding: latin-1\nname = 'é'\r\n".encode("latin-1"))
>>> source.encoding, source.newline, source.line_starts
('iso-8859-1', 'mixed', [0, 18, 31])
>>> source.offset_at(2, 7), source.line_of(25), source.utf8[25:28].decode()
(25, 2, "'é")

A file that cannot be decoded gives an `Unreadable` with the reason.

Tests: `tests/unit/sources/test_source_file.py`.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from codecs import BOM_UTF8, lookup
from collections.abc import Callable, Iterator
from functools import cached_property
from tokenize import detect_encoding

from msgspec import Struct

from codeanatomy.sources.packaging_files import as_python, is_packaging_file

NEWLINE = re.compile(rb"\r\n|\r|\n")
NOT_ASCII = re.compile(rb"[^\0-\x7f]")
NEWLINE_NAMES = {b"\n": "lf", b"\r\n": "crlf", b"\r": "cr"}


class Unreadable(Struct, frozen=True):
    """Why a file cannot be read or decoded: a reason code and a message for people."""

    reason: str
    message: str


class Source:
    """A decoded file; `path` is relative to the repository's root, with `/` between its parts."""

    def __init__(self, path: str, raw: bytes, text: str, encoding: str, has_bom: bool) -> None:
        self.path = path
        self.raw = raw
        self.text = text
        self.utf8 = text.encode("utf-8")
        self.encoding = encoding
        self.has_bom = has_bom

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first byte of each line; also where a line after the last newline would begin."""
        return [0, *(match.end() for match in NEWLINE.finditer(self.utf8))]

    @cached_property
    def newline(self) -> str:
        """Kind of line ends in the file: lf, crlf, cr, mixed or none."""
        kinds = set(NEWLINE.findall(self.utf8))
        return "mixed" if len(kinds) > 1 else NEWLINE_NAMES[kinds.pop()] if kinds else "none"

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """Yield the start, the end (newline included) and the kind of newline of each line."""
        start = 0
        for match in NEWLINE.finditer(self.utf8):
            yield start, match.end(), NEWLINE_NAMES[match.group()]
            start = match.end()
        if start < len(self.utf8):
            yield start, len(self.utf8), "none"

    def offset_at(self, line: int, col: int) -> int | None:
        """Convert a line (from 1) and byte column (from 0) to an offset; None if outside of the file."""
        starts = self.line_starts
        if not 1 <= line <= len(starts) or col < 0:
            return None
        end = starts[line] if line < len(starts) else len(self.utf8)
        offset = starts[line - 1] + col
        return offset if offset <= end else None

    def line_of(self, offset: int) -> int:
        """Return the line of a byte offset, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, line: int) -> str | None:
        """Return the text of a line (from 1), newline included; None if there is no such line."""
        starts = self.line_starts
        if not 1 <= line <= len(starts):
            return None
        end = starts[line] if line < len(starts) else len(self.utf8)
        return self.utf8[starts[line - 1] : end].decode("utf-8")


def decode(path: str, raw: bytes) -> Source | Unreadable:
    """Decode the bytes of a file, or return why that is not possible."""
    try:
        has_bom = raw.startswith(BOM_UTF8)
        cookie, _ = detect_encoding(_first_lines(raw))
        encoding = "utf-8" if has_bom else _codec_name(cookie)
        with warnings.catch_warnings():
            # The codec unicode_escape warns of invalid escapes.
            warnings.simplefilter("ignore")
            text = raw[3 * has_bom :].decode(encoding)
        text = as_python(path, text) if is_packaging_file(path) else text
        return Source(path, raw, text, encoding, has_bom)
    # Codecs raise all kinds of exceptions, even AssertionError.
    except Exception as problem:  # noqa: BLE001
        if b"\0" in raw:
            return Unreadable("binary", "has NUL bytes and is not text in its encoding")
        return Unreadable("undecodable", f"{type(problem).__name__}: {problem}")


def _codec_name(cookie: str) -> str:
    """Normalize the name of a codec: a cookie may also spell it UTF8 or latin1."""
    name = lookup(cookie).name
    return "iso-8859-1" if name == "iso8859-1" else name


def _first_lines(raw: bytes) -> Callable[[], bytes]:
    """Return a `readline` over the two lines that may hold a cookie, split where CPython splits.

    Bytes that are not ASCII are replaced by `?`: no cookie contains them, and `detect_encoding`, unlike
    CPython, takes them for UTF-8 before it knows the encoding.
    """
    first = NEWLINE.split(raw.removeprefix(BOM_UTF8), maxsplit=2)[:2]
    lines = [NOT_ASCII.sub(b"?", line) + b"\n" for line in first]
    if raw.startswith(BOM_UTF8):
        lines[0] = BOM_UTF8 + lines[0]
    remaining = iter(lines)
    return lambda: next(remaining, b"")
