"""Write the tables of a small step together: one Spark job for several tables instead of one each.

    files = in_groups(gathered, parts, groups=2)
    files["cpg_nodes"]()        # writes the files of all tables of its group, and returns those of this one

A job costs a quarter of a second before it does anything, and in a new JVM more. So where all packed rows of
a step are few, a task takes a group of tables and puts each in its order, in memory: the order of the frame's
rows where that is the table's, else sorted. Large steps write each table by itself, with as many tasks as it
has files (`pipeline.packed_rows`, `pipeline.sorted_tables`). Tests: `tests/spark/test_sorted_tables.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import Struct, json
from pyspark.sql import DataFrame

from codeanatomy.arrow import unpack_rows
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.data_files import Batches, write_files
from codeanatomy.pipeline.sorted_tables import in_order, sort_keys

# Packed bytes of all tables of a step that is small; in memory they are some times that.
FEW_BYTES = 32 * 1024 * 1024

Files: TypeAlias = dict[str, list[DataFile]]


class PackedTable(Struct, frozen=True):
    """A table, and the frame column that holds its packed rows."""

    table: Table
    folder: str
    # Column of the frame.
    column: str
    # Columns of the frame whose order is the order of the table; none: the rows have to be sorted.
    keys: tuple[str, ...]
    packed_bytes: int


class Once:
    """Compute a value on first use, in whichever thread needs it first."""

    def __init__(self, make: Callable[[], Files]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: Future[Files] | None = None

    def __call__(self) -> Files:
        """Return the value, or raise the error of its computation, on every call."""
        with self._lock:
            if self._made is None:
                self._made = Future()
                try:
                    self._made.set_result(self._make())
                except Exception as problem:  # noqa: BLE001
                    self._made.set_exception(problem)
        return self._made.result()


def in_groups(
    gathered: DataFrame, parts: Sequence[PackedTable], groups: int
) -> dict[str, Callable[[], list[DataFile]]]:
    """Return a writer for the files of each table; groups of about equal bytes run concurrently."""
    cut: list[list[PackedTable]] = [[] for _ in range(groups)]
    for part in sorted(parts, key=lambda part: -part.packed_bytes):
        min(cut, key=lambda group: sum(each.packed_bytes for each in group)).append(part)
    written: dict[str, Callable[[], list[DataFile]]] = {}
    for group in cut:
        once = Once(partial(write_together, gathered, group))
        written.update({part.table.name: partial(_of, once, part.table.name) for part in group})
    return written


def _of(once: Once, name: str) -> list[DataFile]:
    return once().get(name, [])


def write_together(gathered: DataFrame, parts: Sequence[PackedTable]) -> Files:
    """Write the rows of several tables as data files in one task."""
    keys = [name for name in gathered.columns if any(name in part.keys for part in parts)]
    columns = list(dict.fromkeys((*keys, *(part.column for part in parts))))

    def write(batches: Batches) -> Batches:
        rows: list[dict[str, Any]] = [
            dict(zip(columns, row, strict=True))
            for batch in batches
            for row in zip(*batch.columns, strict=True)
        ]
        for part in parts:
            copied = part.column != part.table.name
            for file in write_files(part.folder, part.table, _rows(part, rows), is_copy=copied):
                row = {"name": [part.table.name], "file": [json.encode(file).decode()]}
                yield pa.RecordBatch.from_pydict(row)

    files: Files = {}
    for row in gathered.select(*columns).coalesce(1).mapInArrow(write, "name string, file string").collect():
        files.setdefault(row["name"], []).append(json.decode(row["file"], type=DataFile))
    return files


def _rows(part: PackedTable, rows: Sequence[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in its order."""
    if not part.keys:
        yield from in_order(sort_keys(part.table), _unpacked(part.column, rows))
        return
    # Null comes first, as Spark has it.
    ordered = sorted(rows, key=lambda row: [(row[key].is_valid, row[key].as_py() or "") for key in part.keys])
    yield from _unpacked(part.column, ordered)


def _unpacked(column: str, rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    return (batch for row in rows for batch in unpack_rows(row[column].as_buffer()))
