"""Write Arrow batches as Parquet data files, by the table's policy, with their statistics.

Spark writes nested rows one value at a time, which for millions of syntax nodes costs several times as much
as parsing the sources. Arrow writes them by column. So an executor that already has rows as Arrow writes the
files itself, into the table's folder; readers ignore them until a commit adds them to the log
(`delta.write.file_commits`).

    write_files("/lake/graph/cpg_nodes", catalog.table("cpg_nodes"), batches)
    [DataFile("node_kind=CALLSITE/part-0e6f...", rows=1790, partition={"node_kind": "CALLSITE"}, ...),
     DataFile("node_kind=CLASS/part-77ab...", ...)]

Rows arrive in the table's order: within a partition value, the rows of one source file, then those of the
next. Tests: `tests/spark/test_file_commits.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import json, structs

from codeanatomy.arrow import decode_texts, number_values
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.layout import resolve_stats_columns
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import Folder, NewFiles
from codeanatomy.delta.write.row_checks import RowCheck
from codeanatomy.errors import ContractError

MB = 1024 * 1024
# Arrow bytes of a row group: a reader of nested rows keeps one group in memory, and a pass over files keeps a
# group of each of its tables.
ROW_GROUP_BYTES = 32 * MB
# Arrow bytes of all unwritten row groups of a partitioned table.
GROUP_BYTES = 128 * MB
# Arrow bytes of a partitioned table that are split into its partitions at a time.
SPLIT_BYTES = 16 * MB

# Longer strings are not used as bounds: they would be in every log entry and checkpoint.
BOUND_CHARS = 1_000

# Partition values that need no escaping in a path, a URI or Delta's log.
PLAIN = re.compile(r"[A-Za-z0-9_]+")

Batches: TypeAlias = Iterator[pa.RecordBatch]
# Values of the partition columns.
PartitionValues: TypeAlias = tuple[str, ...]


class _Stats:
    """Minima, maxima and null counts of some columns."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.columns = tuple(columns)
        self.rows = 0
        self.low: dict[str, object] = {}
        self.high: dict[str, object] = {}
        self.nulls = dict.fromkeys(self.columns, 0)
        # Columns for which only the null count is recorded.
        self.unbounded: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        for name in self.columns:
            column = rows.column(name)
            self.nulls[name] += column.null_count
            if pa.types.is_dictionary(column.type):
                column = decode_texts(column.unique())
            bounds = pc.min_max(column).as_py()
            if name in self.unbounded or _has_no_bounds(column, bounds):
                self.unbounded.add(name)
                self.low.pop(name, None)
                self.high.pop(name, None)
            elif bounds["min"] is not None:
                self.low[name] = min(self.low.get(name, bounds["min"]), bounds["min"])
                self.high[name] = max(self.high.get(name, bounds["max"]), bounds["max"])

    def text(self) -> str:
        """Return the statistics as JSON for Delta's log."""
        counts = {"numRecords": self.rows, "minValues": self.low, "maxValues": self.high}
        return json.encode({**counts, "nullCount": self.nulls}).decode()


def _has_no_bounds(column: pa.ChunkedArray, bounds: Mapping[str, object]) -> bool:
    """Return whether minimum and maximum would be wrong or too long for the log.

    Spark orders NaN after all numbers, Arrow ignores it.
    """
    if pa.types.is_floating(column.type):
        return bool(pc.any(pc.is_nan(column)).as_py())
    return any(isinstance(value, str) and len(value) > BOUND_CHARS for value in bounds.values())


class _PartitionFile:
    """A file being written: rows of one partition value, buffered until they fill a row group."""

    def __init__(self, folder: Folder, table: Table, values: PartitionValues) -> None:
        self.table = table
        self.partition = dict(zip(table.write.partition_by, values, strict=True))
        folders = (f"{column}={value}" for column, value in self.partition.items())
        self.path = "/".join((*folders, f"part-{uuid4()}.{table.write.writer.compression}.parquet"))
        self.file = Path(folder.new_files, self.path)
        self.stats = _Stats(resolve_stats_columns(table))
        self.writer: pq.ParquetWriter | None = None
        self.group: list[pa.RecordBatch] = []
        self.buffered_bytes = 0

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.group.append(batch)
        self.buffered_bytes += size

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        if not self.group:
            return
        # Delta does not store partition columns.
        rows = pa.Table.from_batches(self.group).drop_columns(list(self.partition)).unify_dictionaries()
        self.group, self.buffered_bytes = [], 0
        self.stats.add(rows)
        if self.writer is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.writer = _writer(self.file, self.table, rows)
        self.writer.write_table(rows, row_group_size=self.table.write.writer.row_group_rows)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def data_file(self) -> DataFile:
        """Describe the closed file for the log."""
        return DataFile(
            self.path, self.file.stat().st_size, self.stats.rows, self.stats.text(), self.partition
        )


class TableWriter:
    """Write the rows of a table to new files, one per partition value, and publish them.

    The rules of the table are checked on the way; not for a copy, whose rows are checked in the original
    table.
    """

    def __init__(self, target: NewFiles | str, table: Table, *, is_copy: bool = False) -> None:
        self._folder = (NewFiles(target) if isinstance(target, str) else target).open()
        self._table = table
        self._check = None if is_copy else RowCheck(table)
        self._parts: dict[PartitionValues, _PartitionFile] = {}
        # Rows of a partitioned table that are not in a file yet.
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, which follow those before in the table's order."""
        if not batch.num_rows:
            return
        size = batch.nbytes
        if self._check is not None:
            self._check.add(batch, size)
        if not self._table.write.partition_by:
            self._add_part((), batch, size, ROW_GROUP_BYTES)
            return
        self._waiting.append(batch)
        self._waiting_bytes += size
        if self._waiting_bytes >= SPLIT_BYTES:
            self._split_waiting()

    def close(self) -> list[DataFile]:
        """Finish the files and describe them for the log."""
        try:
            self._split_waiting()
            for part in self._parts.values():
                part.flush()
        finally:
            for part in self._parts.values():
                part.close()
        files = [part.data_file() for part in self._parts.values()]
        self._folder.publish(file.path for file in files)
        broken = () if self._check is None else self._check.broken()
        return [structs.replace(files[0], broken=broken), *files[1:]] if broken else files

    def _split_waiting(self) -> None:
        """Add the rows of each partition value to its file, in their order."""
        if not self._waiting:
            return
        rows = pa.concat_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        for values, part in _partitions(self._table, rows):
            self._add_part(values, part, part.nbytes, GROUP_BYTES)

    def _add_part(self, values: PartitionValues, batch: pa.RecordBatch, size: int, limit: int) -> None:
        parts = self._parts
        if values not in parts:
            parts[values] = _PartitionFile(self._folder, self._table, values)
        parts[values].add(batch, size)
        if sum(part.buffered_bytes for part in parts.values()) >= limit:
            max(parts.values(), key=lambda part: part.buffered_bytes).flush()


def write_files(
    target: NewFiles | str, table: Table, batches: Iterable[pa.RecordBatch], *, is_copy: bool = False
) -> list[DataFile]:
    """Write rows, in the table's order, to new files of a table, given its path or URI."""
    writer = TableWriter(target, table, is_copy=is_copy)
    for batch in batches:
        writer.add(batch)
    return writer.close()


def _partitions(table: Table, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
    """Yield the rows of each partition value, copied: slices would keep all rows in memory."""
    numbers, combinations = number_values([rows.column(name) for name in table.write.partition_by])
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(combinations))).tolist()
    for start, end, values in zip([0, *ends], ends, combinations, strict=False):
        plain = map(_require_plain, table.write.partition_by, values)
        yield tuple(plain), rows.take(pa.array(order[start:end]))


def _require_plain(column: str, value: object) -> str:
    if not isinstance(value, str) or not PLAIN.fullmatch(value):
        raise ContractError(
            f"{column} = {value!r} cannot be the name of a partition folder",
            "partition by columns of letters, digits and underscores",
        )
    return value


def _text_leaves(columns: Iterable[Column], lead: str = "") -> Iterator[str]:
    """Yield the Parquet paths of string columns, also of nested ones."""
    for column in columns:
        path = f"{lead}{column.name}" + (".list.element" if column.array else "")
        if column.type == "struct":
            yield from _text_leaves(column.fields, f"{path}.")
        elif column.type == "string":
            yield path


class _FileWriter(pq.ParquetWriter):  # type: ignore[misc]  # PyArrow has no types
    """A writer that writes nothing when it is freed: on a full disk that would print a traceback."""

    def __del__(self) -> None:
        """Leave a file as it is that could not be closed: no log names it."""


def _writer(path: Path, table: Table, first: pa.Table) -> pq.ParquetWriter:
    """Open a writer for a file, given its first row group."""
    writer = table.write.writer
    # For numbers, which are positions and counts, a dictionary costs time and makes files larger. A column
    # with a bloom filter has none in files of Spark either (`delta.layout`).
    no_dictionary = {
        *writer.dictionary_off,
        *table.write.partition_by,
        *(b.column for b in writer.bloom_filters),
    }
    texts = [] if not writer.dictionary else list(_text_leaves(table.columns))
    group = min(first.num_rows, writer.row_group_rows or first.num_rows)
    return _FileWriter(
        path,
        first.schema,
        compression="none" if writer.compression == "uncompressed" else writer.compression,
        use_dictionary=[leaf for leaf in texts if leaf.split(".")[0] not in no_dictionary],
        # Only these columns are filtered by; footers with bounds of every nested field would be long.
        write_statistics=list(resolve_stats_columns(table)),
        # Texts may be given as codes; readers shall see texts.
        store_schema=not any(pa.types.is_dictionary(field.type) for field in first.schema),
        # Sized by the actual rows: the expected number would add a megabyte to the smallest file.
        bloom_filter_options={
            bloom.column: {"ndv": min(bloom.ndv, group), "fpp": bloom.fpp} for bloom in writer.bloom_filters
        },
    )
