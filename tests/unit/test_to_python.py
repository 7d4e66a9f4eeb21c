"""Arrow into the columns that rules read: the same values as Arrow's own, turned by field."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.arrow import to_python
from support.marks import examples

NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
TEXTS = st.none() | st.text(max_size=3)
INNER = st.fixed_dictionaries({"a": NUMBERS, "t": TEXTS, "many": st.none() | st.lists(NUMBERS, max_size=3)})
INNER_TYPE = pa.struct({"a": pa.int64(), "t": pa.string(), "many": pa.list_(pa.int32())})
ROWS = st.lists(st.none() | st.lists(INNER, max_size=4), max_size=5)


def by_field(row: list[dict[str, Any]] | None) -> dict[str, list[Any]] | None:
    if row is None:
        return None
    return {name: [each[name] for each in row] for name in ("a", "t", "many")}


@given(ROWS, st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_lists_of_structs_are_turned_by_field(rows: list[Any], skip: int, take: int) -> None:
    array = pa.array(rows, pa.list_(INNER_TYPE)).slice(skip, take)
    assert to_python(array) == [by_field(row) for row in rows[skip : skip + take]]


@given(ROWS)
@settings(max_examples=examples(100), deadline=None)
def test_nested_lists_of_structs(rows: list[Any]) -> None:
    """A unit with its instructions: structs in lists in structs in lists."""
    kind = pa.list_(pa.struct({"key": pa.string(), "steps": pa.list_(INNER_TYPE)}))
    array = pa.array([[{"key": "k", "steps": row} for row in rows], None], kind)
    assert to_python(array) == [{"key": ["k"] * len(rows), "steps": [by_field(row) for row in rows]}, None]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([{"x": [1, 2]}, None, {"x": None}]), [{"x": [1, 2]}, None, {"x": None}]),
        (pa.array([True, None, False]), [True, None, False]),
        (pa.array([True, False]), [True, False]),
        (pa.array([1, 2], pa.int32()), [1, 2]),
        (pa.array([], pa.list_(INNER_TYPE)), []),
        (pa.array([None, None], pa.string()), [None, None]),
    ],
)
def test_other_values(array: pa.Array, expected: list[Any]) -> None:
    assert to_python(array) == expected
