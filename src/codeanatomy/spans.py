"""Compare byte spans, convert columns to byte offsets and score candidates (the Python form).

A span is a half-open byte range `[bstart, bend)` in a file's canonical UTF-8 text. It is *valid* when
`0 <= bstart <= bend`; it may be empty. These rules hold for every function here and for its Spark form:

| input | result |
|---|---|
| any argument null | null (except `cpg_score`, where a null length means "unbounded") |
| invalid span (inverted, or begins before 0) | length null; contains, is contained in and overlaps nothing |
| empty span | length 0; contained if inside or at a border; overlaps nothing, not even itself |
| position that cannot be converted | null, which becomes a `span_errors_v1` row; never clamped or guessed |

>>> span_contains(10, 20, 20, 20), span_overlaps(10, 20, 20, 30), span_len(20, 10)
(True, False, None)

Other tools count columns in units of their own. `col_to_byte` converts a column to a byte offset in
its line; here `x` follows a character of four bytes, two UTF-16 units, one code point:

>>> [col_to_byte("😀x", col, "utf16") for col in (0, 1, 2, 3, 4)]
[0, None, 4, 5, None]
>>> col_to_byte("😀x", 1, position_encoding_norm("UTF32CodeUnitOffsetFromLineStart"))
4

`col_to_byte` scans its line once per call: to convert very many columns of one long non-ASCII line, index the
line once instead.

The Spark forms are in `codeanatomy.spark.functions`. Tests: `tests/unit/test_spans.py` (slow oracles),
`tests/spark/test_functions.py` (agreement).
"""

from __future__ import annotations

from math import isnan
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

# The documented confidences are at least 0.1 apart, so a tie-break of at most this never reorders them.
TIE_BREAK = 0.001


def span_len(bstart: int | None, bend: int | None) -> int | None:
    """Return the number of bytes in the span; None if it is invalid."""
    if bstart is None or bend is None or not 0 <= bstart <= bend:
        return None
    return bend - bstart


def span_contains(
    outer_start: int | None, outer_end: int | None, inner_start: int | None, inner_end: int | None
) -> bool | None:
    """Return whether outer contains inner; borders count, so a span contains itself."""
    if outer_start is None or outer_end is None or inner_start is None or inner_end is None:
        return None
    return 0 <= outer_start <= inner_start <= inner_end <= outer_end


def span_overlaps(
    a_start: int | None, a_end: int | None, b_start: int | None, b_end: int | None
) -> bool | None:
    """Return whether the two spans share at least one byte."""
    if a_start is None or a_end is None or b_start is None or b_end is None:
        return None
    return min(a_start, b_start) >= 0 and max(a_start, b_start) < min(a_end, b_end)


def cpg_score(confidence: float | None, span_length: int | None) -> float | None:
    """Score a candidate of one source: higher confidence first, then the shorter span.

    Confidence is clamped to [0, 1] *before* the tie-break is added, so the score (at most 1.001) cannot
    saturate. A null or negative length counts as unbounded; a null or NaN confidence has no score. Up to
    a length of a million bytes, every additional byte lowers the score.

    >>> cpg_score(0.9, 10) > cpg_score(0.9, 11) > cpg_score(0.9, None) > cpg_score(0.7, 0)
    True
    >>> cpg_score(1.0, 0), cpg_score(7.0, None)
    (1.001, 1.0)
    """
    if confidence is None or isnan(confidence):
        return None
    clamped = min(max(confidence, 0.0), 1.0)
    if span_length is None or span_length < 0:
        return clamped + 0.0
    return clamped + TIE_BREAK / (1.0 + float(span_length))


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
