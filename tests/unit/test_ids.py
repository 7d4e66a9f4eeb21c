"""The recipe of hashed ids: golden values, and that the framing is injective."""

from __future__ import annotations

import doctest
from base64 import urlsafe_b64encode
from decimal import Decimal
from enum import IntEnum, StrEnum
from hashlib import sha256
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy import ids
from codeanatomy.ids import Part, frame, stable_id

# Written down, not computed: stored lakes hold these values, so a change of recipe has to fail here.
GOLDEN_IDS: tuple[tuple[str, tuple[Part, ...], str], ...] = (
    ("file", (), "file:PDcu6OqQAeg_dP6I86RdVg"),
    ("file", ("repo", "src/a.py"), "file:fFiggrKlkRDH6mNMcVjUhw"),
    ("edge", ("CALLS", "n:1", "n:2", 10, 20), "edge:IOpgnyZCRuO4Lbm-yy0eyw"),
    ("edge", ("CALLS", "n:1", "n:2", None, None), "edge:BUd0uQkYz2iGRioGhxRjKQ"),
    ("node", ("", "~", "0:", True, False, -1, 2**63 - 1), "node:zPkr7b9rTjy0S_O-HCPDcQ"),
    ("", ("café", "😀", "e\u0301", "a\r\nb", "\x1f", "\x00"), ":2xUugO97bUh5kRjXKu0l6g"),
)

# Chosen so that a framing with a mistake in it collides: separators, lengths and null marks as text.
NASTY = (None, "", "~", "~~", ":", "0:", "1:", "1:a", "a", "a:", "1", "\x1f", "😀")
texts = st.one_of(st.none(), st.sampled_from(NASTY), st.text(alphabet="~:01a\x1fé😀", max_size=6))


def unframe(raw: bytes) -> list[str | None]:
    """The parts back from their frame: what has an inverse is injective."""
    parts: list[str | None] = []
    while raw:
        if raw[:1] == b"~":
            parts.append(None)
            raw = raw[1:]
        else:
            length, _, rest = raw.partition(b":")
            parts.append(rest[: int(length)].decode("utf-8", "surrogatepass"))
            raw = rest[int(length) :]
    return parts


@pytest.mark.parametrize(("prefix", "parts", "expected"), GOLDEN_IDS)
def test_golden_ids(prefix: str, parts: tuple[Part, ...], expected: str) -> None:
    assert stable_id(prefix, *parts) == expected


@given(st.lists(st.one_of(texts, st.text())))
def test_a_frame_can_be_read_back(parts: list[str | None]) -> None:
    assert unframe(frame(*parts)) == parts


def test_no_two_short_lists_share_a_frame_or_an_id() -> None:
    lists = [parts for length in range(4) for parts in product(NASTY, repeat=length)]
    assert len({frame(*parts) for parts in lists}) == len(lists)
    assert len({stable_id("x", *parts) for parts in lists}) == len(lists)


@given(st.text(alphabet="~:01a", max_size=4), st.lists(texts, max_size=4))
def test_the_prefix_is_hashed_too(prefix: str, parts: list[str | None]) -> None:
    digest = stable_id(prefix, *parts)[len(prefix) :]
    assert digest != stable_id(f"{prefix}x", *parts)[len(prefix) + 1 :]


@given(st.text(max_size=5), st.lists(texts, max_size=3))
def test_an_id_is_the_prefix_and_128_bits_of_the_frame(prefix: str, parts: list[str | None]) -> None:
    head, _, digest = stable_id(prefix, *parts).rpartition(":")
    full = urlsafe_b64encode(sha256(frame(prefix, *parts)).digest()[:16]).decode()
    assert (head, digest + "==") == (prefix, full)
    assert len(digest) == 22


def test_null_in_null_out() -> None:
    assert stable_id(None, "a") is None


def test_integers_and_booleans_are_their_spark_text() -> None:
    class Number(IntEnum):
        SEVEN = 7

    class Word(StrEnum):
        A = "a"

    assert frame(7, -1, Number.SEVEN, 2**70) == frame("7", "-1", "7", str(2**70))
    assert frame(True, False) == frame("true", "false")
    assert frame(Word.A) == frame("a")


@pytest.mark.parametrize("part", [1.0, b"a", Decimal(1), ("a",), object()])
@pytest.mark.parametrize("prefix", ["x", None])
def test_other_parts_are_refused(prefix: None, part: Part) -> None:
    with pytest.raises(TypeError, match=type(part).__name__):
        stable_id(prefix, part)


def test_lone_surrogates_hash_and_stay_distinct() -> None:
    values = ["\ud800", "\ud83d\ude00", "😀", "\ufffd", "?"]
    assert len({stable_id("x", value) for value in values}) == len(values)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(ids).failed == 0
