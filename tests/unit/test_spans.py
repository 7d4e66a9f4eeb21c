"""Positions against slow definitions of what they mean."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy import spans
from codeanatomy.spans import (
    PositionEncoding,
    col_to_byte,
    position_encoding_norm,
)

ENCODINGS: tuple[PositionEncoding, ...] = ("utf8", "utf16", "utf32")
NASTY = "ab\r\n\tée\u0301\uffff😀\U0010ffff\ud83d\ude00"
lines = st.text(alphabet=st.one_of(st.sampled_from(NASTY), st.characters()))


def slow_col_to_byte(line_text: str, col: int, encoding: str) -> int | None:
    """Tries every border between two characters and counts the units before it."""
    codec, size = {"utf8": ("utf-8", 1), "utf16": ("utf-16-be", 2), "utf32": ("utf-32-be", 4)}[encoding]
    for border in range(len(line_text) + 1):
        before = line_text[:border]
        # Character by character: two lone surrogates in a row are two characters, not a pair.
        if sum(len(char.encode(codec, "surrogatepass")) for char in before) == col * size:
            return len(before.encode("utf-8", "surrogatepass"))
    return None


@pytest.mark.system
@given(lines, st.sampled_from(ENCODINGS))
def test_col_to_byte_against_a_slow_walk(line_text: str, encoding: str) -> None:
    for col in range(-1, 4 * len(line_text) + 3):
        assert col_to_byte(line_text, col, encoding) == slow_col_to_byte(line_text, col, encoding), col


@given(lines)
def test_every_border_between_characters_has_one_column_per_encoding(line_text: str) -> None:
    for encoding in ENCODINGS:
        placed = [col_to_byte(line_text, col, encoding) for col in range(4 * len(line_text) + 1)]
        borders = [offset for offset in placed if offset is not None]
        assert len(borders) == len(line_text) + 1
        assert borders == sorted(set(borders))


@pytest.mark.parametrize("encoding", [None, "", "UTF-8", "utf-16", "utf64", "1"])
def test_only_normalised_encodings_place_a_column(encoding: str | None) -> None:
    assert col_to_byte("abc", 1, encoding) is None
    assert col_to_byte("é", 0, encoding) is None


def test_null_text_or_column_is_not_placed() -> None:
    assert col_to_byte(None, 0, "utf8") is None
    assert col_to_byte("a", None, "utf8") is None
    assert col_to_byte("", 0, "utf16") == 0
    assert col_to_byte("é", 2**40, "utf32") is None


def test_position_encodings() -> None:
    for bits, number in ((8, 1), (16, 2), (32, 3)):
        spellings = (f"utf{bits}", f"UTF{bits}", f"utf-{bits}", f"UTF-{bits}", f"utf_{bits}", f"UTF_{bits}")
        scip = (f"UTF{bits}CodeUnitOffsetFromLineStart", number, str(number))
        for encoding in (*spellings, *scip):
            assert position_encoding_norm(encoding) == f"utf{bits}", encoding


UNKNOWN = ("", "0", "01", "1.0", "-1", "_2", "utf", "utf7", " utf8", "utf8\n", "utf-16le", "latin-1")


@pytest.mark.parametrize("encoding", [*UNKNOWN, "UnspecifiedPositionEncoding", None, 0, 4, -1, True])
def test_an_unknown_encoding_is_never_guessed(encoding: str | int | None) -> None:
    assert position_encoding_norm(encoding) is None


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(spans).failed == 0
