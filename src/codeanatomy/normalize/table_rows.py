"""Convert rows of a normalize table to columns, and to Arrow.

    columns = table_columns("type_nodes_v1", rows)        # lists by column, from tuples
    batch_of("type_nodes_v1", file, columns)              # with the columns of the file, in the table's order

Tests: `tests/unit/normalize/test_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.file_view import Columns, FileView


def table_columns(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Return rows of a table by column; the rows have its columns in order, without those of the file."""
    names = catalog.table(table).column_names[len(FILE_COLUMN_NAMES) :]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, lists, strict=True))


def batch_of(name: str, file: FileView, columns: Columns) -> pa.RecordBatch:
    """Return the rows of a file as Arrow, in the table's sort order; absent columns are for no rows."""
    table = catalog.table(name)
    unknown = columns.keys() - set(table.column_names)
    if unknown:
        raise ValueError(f"{name} has no columns {sorted(unknown)}")
    size = len(next(iter(columns.values()), ()))
    key = {"repo_id": file.repo_id, "file_id": file.file_id, "path": file.path}
    arrays = [
        pa.repeat(key[column.name], size)
        if column.name in key
        else array(column, columns.get(column.name, []))
        for column in table.columns
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))
    order = [(name, "ascending") for name in table.ordering if name not in key]
    return batch.sort_by(order) if order and size > 1 else batch
