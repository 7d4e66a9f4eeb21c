"""Convert rows of a normalize table to columns, and those of several files to Arrow.

    columns = table_columns("type_nodes_v1", rows)        # lists by column, from tuples
    batch_of("type_nodes_v1", [(file, columns), ...])     # with those of the files, in the table's order

Files are converted together: Arrow takes some microseconds for each array, as long as for a hundred values.
Tests: `tests/unit/normalize/test_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema
from codeanatomy.catalog.spec import Column
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.file_view import Columns, FileView


class _Layout(NamedTuple):
    """The schema of a table, its columns without those of the file, and the keys by which it is sorted."""

    schema: pa.Schema
    columns: Sequence[Column]
    order: Sequence[tuple[str, str]]


@cache
def _layout(name: str) -> _Layout:
    table = catalog.table(name)
    # Files of one repository.
    order = [(key, "ascending") for key in table.ordering if key != "repo_id"]
    return _Layout(arrow_schema(table), table.columns[len(FILE_COLUMN_NAMES) :], order)


def table_columns(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Return rows of a table by column; the rows have its columns in order, without those of the file."""
    names = [column.name for column in _layout(table).columns]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, lists, strict=True))


def batch_of(name: str, files: Sequence[tuple[FileView, Columns]]) -> pa.RecordBatch:
    """Return the rows of files of one repository as Arrow, in the table's sort order."""
    layout = _layout(name)
    sizes = [_row_count(name, columns) for _, columns in files]
    numbers = pa.array(np.repeat(np.arange(len(files)), sizes))
    keys = [pa.array([getattr(file, name) for file, _ in files], pa.string()) for name in FILE_COLUMN_NAMES]
    values = [
        array(column, list(chain.from_iterable(columns[column.name] for _, columns in files)))
        for column in layout.columns
    ]
    arrays = [*(key.take(numbers) for key in keys), *values]
    return sort_rows(name, pa.RecordBatch.from_arrays(arrays, schema=layout.schema))


def _row_count(name: str, columns: Columns) -> int:
    """Return the number of rows; raise ValueError if lists are missing or differ in length."""
    sizes = {column.name: len(columns.get(column.name, ())) for column in _layout(name).columns}
    if len(columns) != len(sizes) or len({*sizes.values()}) > 1:
        raise ValueError(f"{name} needs equally long lists of {sorted(sizes)}, got {sizes}")
    return max(sizes.values())


def sort_rows(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of files of one repository in the table's sort order."""
    return rows.sort_by(_layout(name).order) if rows.num_rows > 1 else rows
