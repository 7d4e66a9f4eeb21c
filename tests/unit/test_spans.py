"""Spans, positions and the score against slow definitions of what they mean."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from itertools import pairwise, product
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy import spans
from codeanatomy.spans import (
    PositionEncoding,
    col_to_byte,
    cpg_score,
    position_encoding_norm,
    span_contains,
    span_len,
    span_overlaps,
)

ENCODINGS: tuple[PositionEncoding, ...] = ("utf8", "utf16", "utf32")
SMALL = range(-1, 5)
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


def bytes_of(start: int, end: int) -> set[int]:
    return set(range(start, end))


@pytest.mark.parametrize("outer", list(product(SMALL, SMALL)))
def test_spans_are_sets_of_bytes(outer: tuple[int, int]) -> None:
    for inner in product(SMALL, SMALL):
        valid = all(0 <= start <= end for start, end in (outer, inner))
        shared = bytes_of(*outer) & bytes_of(*inner)
        within = outer[0] <= inner[0] and inner[1] <= outer[1]
        assert span_overlaps(*outer, *inner) == (valid and shared != set())
        assert span_overlaps(*inner, *outer) == span_overlaps(*outer, *inner)
        assert span_contains(*outer, *inner) == (valid and within)
        if valid and bytes_of(*inner):
            assert span_contains(*outer, *inner) == (bytes_of(*inner) <= bytes_of(*outer))


def test_span_len() -> None:
    for start, end in product(SMALL, SMALL):
        assert span_len(start, end) == (len(bytes_of(start, end)) if 0 <= start <= end else None)


@pytest.mark.parametrize("function", [span_contains, span_overlaps])
@pytest.mark.parametrize("missing", range(4))
def test_any_null_is_null(function: Callable[..., bool | None], missing: int) -> None:
    for bounds in product((0, 3, 9), repeat=4):
        assert function(*(None if i == missing else bound for i, bound in enumerate(bounds))) is None
    assert span_len(None, 1) is None
    assert span_len(1, None) is None


def test_the_score_ranks_by_confidence_then_by_length() -> None:
    lengths = (0, 1, 2, 10, 1_000, 999_999, 1_000_000, 10**12, None)
    ranked = [cpg_score(confidence, length) for confidence in (1.0, 0.9, 0.7, 0.5, 0.3) for length in lengths]
    assert all(better > worse for better, worse in pairwise(ranked))  # type: ignore[operator]


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_one_more_byte_lowers_the_score(confidence: float, length: int) -> None:
    assert cpg_score(confidence, length) > cpg_score(confidence, length + 1)  # type: ignore[operator]


def test_the_score_at_its_borders() -> None:
    assert cpg_score(None, 1) is None
    assert cpg_score(nan, 1) is None
    assert cpg_score(inf, None) == cpg_score(1.0, None) == 1.0
    assert cpg_score(-inf, None) == cpg_score(-1.0, -5) == 0.0
    assert cpg_score(0.5, -1) == cpg_score(0.5, None) == 0.5


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(spans).failed == 0
