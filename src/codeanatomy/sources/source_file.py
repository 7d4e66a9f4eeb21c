r"""One file as every witness sees it: decoded once, with one idea of lines and one unit of positions.

The bytes are decoded as CPython does (BOM, then the PEP 263 cookie, else UTF-8). The canonical text has no
BOM and its newlines are untouched; every span counts bytes of its UTF-8 form. Lines end at `\n`, `\r\n`
or a lone `\r`, and nowhere else: a form feed or U+2028 is part of its line.

>>> source = decode("a.py", "# coding: latin-1\nname = 'é'\r\n".encode("latin-1"))
>>> source.encoding, source.newline, source.line_starts
('iso-8859-1', 'mixed', [0, 18, 31])
>>> source.at(2, 7), source.line_of(25), source.utf8[25:28].decode()
(25, 2, "'é")

What cannot be decoded is an `Unreadable` with its reason. Tests: `tests/unit/sources/test_source_file.py`.
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

NEWLINE = re.compile(rb"\r\n|\r|\n")
NOT_ASCII = re.compile(rb"[^\0-\x7f]")
KINDS = {b"\n": "lf", b"\r\n": "crlf", b"\r": "cr"}


class Unreadable(Struct, frozen=True):
    """A file that no witness can read, and why: a word for machines and a sentence for people."""

    reason: str
    message: str


class Source:
    """A decoded file. `path` is below the repository's root, with `/` between its parts."""

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
        return [0, *(found.end() for found in NEWLINE.finditer(self.utf8))]

    @cached_property
    def newline(self) -> str:
        """The line ends found: lf, crlf, cr, mixed or none."""
        kinds = set(NEWLINE.findall(self.utf8))
        return "mixed" if len(kinds) > 1 else KINDS[kinds.pop()] if kinds else "none"

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """First byte, byte after the last (newline included) and kind of newline, of each line."""
        start = 0
        for found in NEWLINE.finditer(self.utf8):
            yield start, found.end(), KINDS[found.group()]
            start = found.end()
        if start < len(self.utf8):
            yield start, len(self.utf8), "none"

    def at(self, line: int, col: int) -> int | None:
        """The offset of a place given by line (from 1) and byte column (from 0); null if there is none."""
        starts = self.line_starts
        if not 1 <= line <= len(starts) or col < 0:
            return None
        end = starts[line] if line < len(starts) else len(self.utf8)
        place = starts[line - 1] + col
        return place if place <= end else None

    def line_of(self, offset: int) -> int:
        """The line of a byte, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, line: int) -> str | None:
        """The text of a line (from 1), newline included; null if there is none."""
        starts = self.line_starts
        if not 1 <= line <= len(starts):
            return None
        end = starts[line] if line < len(starts) else len(self.utf8)
        return self.utf8[starts[line - 1] : end].decode("utf-8")


def decode(path: str, raw: bytes) -> Source | Unreadable:
    """The file as text, or why not."""
    try:
        has_bom = raw.startswith(BOM_UTF8)
        cookie, _ = detect_encoding(_first_lines(raw))
        encoding = "utf-8" if has_bom else _name(cookie)
        with warnings.catch_warnings():
            # Of the codec unicode_escape.
            warnings.simplefilter("ignore")
            text = raw[3 * has_bom :].decode(encoding)
        return Source(path, raw, text, encoding, has_bom)
    # Codecs raise what they like, down to AssertionError.
    except Exception as problem:  # noqa: BLE001
        if b"\0" in raw:
            return Unreadable("binary", "has NUL bytes and is not text in its encoding")
        return Unreadable("undecodable", f"{type(problem).__name__}: {problem}")


def _name(cookie: str) -> str:
    """One name for each codec: a cookie may also say UTF8 or latin1."""
    name = lookup(cookie).name
    return "iso-8859-1" if name == "iso8859-1" else name


def _first_lines(raw: bytes) -> Callable[[], bytes]:
    """A `readline` over the two lines that may hold a cookie, split where CPython splits.

    Bytes that are not ASCII are blotted out: they belong to no cookie, and `detect_encoding`, other than
    CPython, takes them for UTF-8 before it knows the encoding.
    """
    first = NEWLINE.split(raw.removeprefix(BOM_UTF8), maxsplit=2)[:2]
    lines = [NOT_ASCII.sub(b"?", line) + b"\n" for line in first]
    if raw.startswith(BOM_UTF8):
        lines[0] = BOM_UTF8 + lines[0]
    left = iter(lines)
    return lambda: next(left, b"")
