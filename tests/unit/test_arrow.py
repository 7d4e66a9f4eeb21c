"""Columns of Python lists into Arrow, against pyarrow's own conversion of rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy import catalog
from codeanatomy.arrow import SCALARS, array, arrow_schema, arrow_type
from codeanatomy.catalog.spec import Column
from codeanatomy.catalog.tables.columns import LINE, span, strings, structs
from support.marks import examples

TABLES = [table for table in catalog.TABLES if table.stage == "extract"]
COLUMNS = [column for table in TABLES for column in table.columns]
NESTED = structs(
    "marks",
    "Marks.",
    LINE,
    strings("names", "Names."),
    structs("parts", "Parts.", *span(), Column("text", "string", "Text.")),
    Column("one", "struct", "One.", fields=(LINE, strings("names", "Names."))),
)

# Rows as a reader sees them: a list of structs is a list of dicts.

TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("é😀\ud800\udfff\0"), max_size=5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "binary": st.binary(max_size=5),
}


def values(column: Column) -> st.SearchStrategy[Any]:
    """Anything the column may hold; only a struct in a list is never null."""
    if column.type == "struct":
        single = st.fixed_dictionaries({field.name: values(field) for field in column.fields})
    else:
        single = VALUES[column.type]
    if not column.array:
        return st.none() | single
    return st.none() | st.lists(single if column.type == "struct" else st.none() | single, max_size=4)


def cell(column: Column, value: Any) -> Any:
    """The same as a witness gives it: a list of structs is a list per field."""
    if value is None or column.type != "struct":
        return value
    if column.array:
        return {field.name: [cell(field, row[field.name]) for row in value] for field in column.fields}
    return {field.name: cell(field, value[field.name]) for field in column.fields}


def storable(value: Any) -> Any:
    """Lone surrogates as their escapes."""
    if isinstance(value, str):
        return "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    return {name: storable(item) for name, item in value.items()} if isinstance(value, dict) else value


def check(column: Column, rows: list[Any]) -> None:
    made = array(column, [cell(column, row) for row in rows])
    expected = pa.array([storable(row) for row in rows], arrow_type(column))
    made.validate(full=True)
    assert made.type == expected.type
    assert made.equals(expected)
    assert made.to_pylist() == expected.to_pylist()


cases = st.sampled_from([*COLUMNS, *[NESTED] * 40]).flatmap(
    lambda column: st.tuples(st.just(column), st.lists(values(column), max_size=4))
)


@given(cases)
@settings(max_examples=examples(500), deadline=None)
def test_rows_come_out_as_pyarrow_would_make_them(case: tuple[Column, list[Any]]) -> None:
    check(*case)


@pytest.mark.parametrize("column", [*COLUMNS, NESTED], ids=lambda column: column.name)
def test_batches_without_rows_and_rows_without_cells(column: Column) -> None:
    for size in range(3):
        check(column, [None] * size)
        if column.array:
            check(column, [[]] * size)


def test_every_column_of_the_stage_has_a_type() -> None:
    for table in TABLES:
        schema = arrow_schema(table)
        assert schema.names == list(table.column_names)
        assert [schema.field(name).type for name in schema.names] == list(map(arrow_type, table.columns))
    assert len(COLUMNS) > 50
    assert str(arrow_type(NESTED)).startswith(
        "list<item: struct<line: int32, names: list<item: string>, parts: list<"
    )


def test_lists_may_be_any_sequence() -> None:
    made = array(
        structs("marks", "Marks.", LINE, *span()), [{"line": range(2), "bstart": (1, 2), "bend": [3, 4]}]
    )
    assert made.to_pylist() == [[{"line": 0, "bstart": 1, "bend": 3}, {"line": 1, "bstart": 2, "bend": 4}]]


MARKS = structs("marks", "Marks.", LINE, strings("names", "Names."))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"line": [1]},
        {"names": [["a"]]},
        {"line": [1], "names": [["a"]], "col": [1]},
        {"line": [1], "names": []},
        {"line": [], "names": [["a"]]},
        {"line": [1, 2], "names": [["a"]]},
    ],
)
def test_ragged_lists_are_refused(bad: dict[str, list[Any]]) -> None:
    """They would shift the rows of the files that follow."""
    good = {"line": [1], "names": [["a"]]}
    for cells in ([bad], [good, bad], [None, bad, good]):
        with pytest.raises(ValueError, match="marks needs equally long lists for"):
            array(MARKS, cells)
    outer = structs("outer", "Outer.", LINE, MARKS)
    with pytest.raises(ValueError, match="marks needs equally long lists for"):
        array(outer, [{"line": [1, 2], "marks": [good, bad]}])


@pytest.mark.parametrize("bad", [{}, {"line": 1}, {"line": 1, "names": [], "col": 1}])
def test_structs_with_other_fields_are_refused(bad: dict[str, Any]) -> None:
    column = Column("mark", "struct", "Mark.", fields=(LINE, strings("names", "Names.")))
    with pytest.raises(ValueError, match="mark needs the fields"):
        array(column, [{"line": 1, "names": []}, bad])


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("int", 2**31),
        ("int", "1"),
        ("bigint", 2**63),
        ("string", 1),
        ("string", b"\xff"),
        ("boolean", "yes"),
    ],
)
def test_values_of_another_type_are_refused(kind: Any, bad: Any) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, AttributeError)):
        array(Column("x", kind, "X."), [None, bad])


def test_only_what_cannot_be_encoded_is_escaped() -> None:
    column = Column("x", "string", "X.")
    assert array(column, ["a\\", "\ud800", None, "é"]).to_pylist() == ["a\\", "\\ud800", None, "é"]
    assert set(SCALARS) >= {column.type for column in COLUMNS if column.type != "struct"}
