"""Convert columns of a line, in the units of other tools, to byte offsets.

Other tools count columns in units of their own. `col_to_byte` converts a column to a byte offset in
its line; here `x` follows a character of four bytes, two UTF-16 units, one code point:

>>> [col_to_byte("😀x", col, "utf16") for col in (0, 1, 2, 3, 4)]
[0, None, 4, 5, None]
>>> col_to_byte("😀x", 1, position_encoding_norm("UTF32CodeUnitOffsetFromLineStart"))
4

A position that cannot be converted is None, which becomes a row of `span_errors_v1`; it is never clamped or
guessed. `col_to_byte` scans its line once per call: to convert very many columns of one long non-ASCII line,
index the line once instead.

Tests: `tests/unit/test_spans.py` (slow oracles).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

PositionEncoding: TypeAlias = Literal["utf8", "utf16", "utf32"]

# SCIP's enum by number; the other spellings are compared in lower case without '-' and '_'.
_NUMBERED: dict[str, PositionEncoding] = {"1": "utf8", "2": "utf16", "3": "utf32"}
_SPELLED: dict[str, PositionEncoding] = {
    "utf8": "utf8",
    "utf16": "utf16",
    "utf32": "utf32",
    "utf8codeunitoffsetfromlinestart": "utf8",
    "utf16codeunitoffsetfromlinestart": "utf16",
    "utf32codeunitoffsetfromlinestart": "utf32",
}
_WITHOUT_SEPARATORS = str.maketrans("", "", "-_")

# Bytes that cannot begin a UTF-8 character.
_CONTINUATION = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))


def position_encoding_norm(encoding: str | int | None) -> PositionEncoding | None:
    """Return the unit of a column from SCIP's enum or any usual spelling; None if it is unknown.

    >>> [position_encoding_norm(e) for e in ("UTF-8", 2, "utf_32", 0, "UnspecifiedPositionEncoding", "-1")]
    ['utf8', 'utf16', 'utf32', None, None, None]
    """
    if encoding is None:
        return None
    text = str(encoding)
    # Numbers are compared unchanged: without its '-', -1 would be an encoding.
    return _NUMBERED.get(text) or _SPELLED.get(text.lower().translate(_WITHOUT_SEPARATORS))


def col_to_byte(line_text: str | None, col: int | None, encoding: str | None) -> int | None:
    """Return the UTF-8 byte offset of a 0-based column in code units of `encoding` (a normalised name).

    None for a column before, beyond or inside a character, and for an unknown encoding. The end of the
    line is a position. Each lone surrogate is one UTF-16 unit and three bytes.
    """
    if line_text is None or col is None or col < 0 or encoding not in _NUMBERED.values():
        return None
    if line_text.isascii():
        return col if col <= len(line_text) else None
    if encoding == "utf8":
        return _utf8_boundary(_utf8(line_text), col)
    chars = col if encoding == "utf32" else _chars_before(line_text, col)
    if chars is None or chars > len(line_text):
        return None
    return len(_utf8(line_text[:chars]))


def _utf8_boundary(raw: bytes, col: int) -> int | None:
    if col > len(raw):
        return None
    return None if raw[col : col + 1] in _CONTINUATION else col


def _chars_before(line_text: str, col_utf16: int) -> int | None:
    """Count the characters before a UTF-16 column; None inside a surrogate pair or beyond the end."""
    if max(line_text) <= "\uffff":
        return col_utf16
    units = 0
    for chars, char in enumerate(line_text):
        if units >= col_utf16:
            return chars if units == col_utf16 else None
        units += 1 if char <= "\uffff" else 2
    return len(line_text) if units == col_utf16 else None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
