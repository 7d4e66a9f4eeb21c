"""The order of rows in a table's data files, and the ranges that they are cut into."""

from __future__ import annotations

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.pipeline.executors.sorted_tables import (
    choose_cuts,
    complete_rows,
    in_order,
    range_keys,
    range_numbers,
    sample_rows,
)

TABLE = catalog.table("cpg_edges_by_dst")
KEYS = range_keys(TABLE, TABLE.column_names)


def edges(count: int) -> pa.RecordBatch:
    """Keys of edges, in no order."""
    places = [number * 7919 % count for number in range(count)]
    columns = {name: pa.array([f"{place % 3}" for place in places]) for name in KEYS[:-1]}
    columns[KEYS[-1]] = pa.array([f"function:{place:09d}" for place in places])
    return pa.RecordBatch.from_pydict(columns)


def test_the_order_is_that_of_the_table_and_then_its_key() -> None:
    keys = TABLE.sort_keys
    assert keys[: len(TABLE.ordering)] == tuple(TABLE.ordering)
    assert set(TABLE.primary_key) <= set(keys)
    assert len(set(keys)) == len(keys)


def test_rows_are_sorted_and_null_comes_first() -> None:
    one, other = pa.record_batch({"k": ["b", None], "n": [1, 2]}), pa.record_batch({"k": ["a"], "n": [3]})
    rows = pa.Table.from_batches(list(in_order(("k", "n"), iter([one, other]))))
    assert rows.column("n").to_pylist() == [2, 3, 1]
    assert list(in_order(("k",), iter([]))) == []


@pytest.mark.parametrize("ranges", [2, 5, 50])
def test_ranges_are_in_order_and_about_equal(ranges: int) -> None:
    rows = edges(5000)
    cuts = choose_cuts(pa.Table.from_batches([sample_rows(rows, KEYS, 5)]), TABLE, ranges)
    assert len(cuts) <= ranges - 1
    numbers = range_numbers(rows, KEYS, cuts).tolist()
    cells = list(zip(*(rows.column(key).to_pylist() for key in KEYS), strict=True))
    ordered = [number for _, number in sorted(zip(cells, numbers, strict=True))]
    assert ordered == sorted(ordered)
    assert set(numbers) == set(range(len(cuts) + 1))
    assert max(map(numbers.count, set(numbers))) < 4 * len(numbers) / ranges


def test_constants_and_the_order_of_columns_are_those_of_the_table() -> None:
    table = catalog.table("extract_error_artifacts")
    others = [name for name in reversed(table.column_names) if name != "run_id"]
    schema = arrow_schema(table)
    batch = pa.RecordBatch.from_pydict({name: pa.nulls(1, schema.field(name).type) for name in others})
    [rows] = complete_rows(table, [batch], {"run_id": "run-1"})
    assert rows.schema.names == list(table.column_names)
    assert rows.column("run_id").to_pylist() == ["run-1"]
