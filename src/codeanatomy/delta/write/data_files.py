"""Data files that Python writes: Arrow batches as Parquet, by the table's policy, with their statistics.

Spark writes nested rows one value at a time, which for millions of syntax nodes costs several times what it
takes to parse the sources. Arrow writes them by column. So an executor that has rows as Arrow anyway writes
the files itself, into the table's folder, where nobody sees them before a commit tells of them
(`delta.write.adopt`).

    write_files("/lake/graph/cpg_nodes", catalog.table("cpg_nodes"), batches)
    [DataFile("node_kind=CALLSITE/part-0e6f...", rows=1790, partition={"node_kind": "CALLSITE"}, ...),
     DataFile("node_kind=CLASS/part-77ab...", ...)]

Rows come in the order of the table: of each partition value those of a source file, then those of the next.
Tests: `tests/spark/test_adopt.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import json, structs
from pyspark.sql import DataFrame

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.layout import resolve_stats_columns
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.row_checks import RowCheck
from codeanatomy.errors import ContractError

MB = 1024 * 1024
# Arrow bytes of a row group: a reader of nested rows holds one group. Of a partitioned table, what all its
# groups that are not written yet may hold together.
GROUP_BYTES = 128 * MB
# Arrow bytes of a partitioned table that are cut into its partitions at a time.
CUT_BYTES = 16 * MB

# Longer texts are no bounds: they would be in every entry of the log, and in every checkpoint.
BOUND_CHARS = 1_000

# Partition values that are the same in a path, in a URI and in Delta's log.
PLAIN = re.compile(r"[A-Za-z0-9_]+")

Batches: TypeAlias = Iterator[pa.RecordBatch]
# Of the partition columns.
PartitionValues: TypeAlias = tuple[str, ...]


class _Stats:
    """Minima, maxima and counts of nulls of some columns."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.columns = tuple(columns)
        self.rows = 0
        self.low: dict[str, object] = {}
        self.high: dict[str, object] = {}
        self.nulls = dict.fromkeys(self.columns, 0)
        # Of these nothing is told but how many are null.
        self.unbounded: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        for name in self.columns:
            column = rows.column(name)
            self.nulls[name] += column.null_count
            found = pc.min_max(column).as_py()
            if name in self.unbounded or _has_no_bounds(column, found):
                self.unbounded.add(name)
                self.low.pop(name, None)
                self.high.pop(name, None)
            elif found["min"] is not None:
                self.low[name] = min(self.low.get(name, found["min"]), found["min"])
                self.high[name] = max(self.high.get(name, found["max"]), found["max"])

    def text(self) -> str:
        """As Delta's log has them."""
        counts = {"numRecords": self.rows, "minValues": self.low, "maxValues": self.high}
        return json.encode({**counts, "nullCount": self.nulls}).decode()


def _has_no_bounds(column: pa.ChunkedArray, found: Mapping[str, object]) -> bool:
    """Whether the least and the greatest value would mislead, or fill the log.

    To Spark what is no number is greater than all numbers, to Arrow it is not there.
    """
    if pa.types.is_floating(column.type):
        return bool(pc.any(pc.is_nan(column)).as_py())
    return any(isinstance(value, str) and len(value) > BOUND_CHARS for value in found.values())


class _PartitionFile:
    """A file under way: rows of one partition value, kept until they make a row group."""

    def __init__(self, folder: str, table: Table, values: PartitionValues) -> None:
        self.table = table
        self.partition = dict(zip(table.write.partition_by, values, strict=True))
        folders = (f"{column}={value}" for column, value in self.partition.items())
        self.path = "/".join((*folders, f"part-{uuid4()}.{table.write.writer.compression}.parquet"))
        self.file = Path(folder, self.path)
        self.stats = _Stats(resolve_stats_columns(table))
        self.writer: pq.ParquetWriter | None = None
        self.group: list[pa.RecordBatch] = []
        self.held = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.group.append(batch)
        self.held += batch.nbytes

    def flush(self) -> None:
        """Write what is kept as a row group."""
        if not self.group:
            return
        # Delta does not store partition columns.
        rows = pa.Table.from_batches(self.group).drop_columns(list(self.partition))
        self.group, self.held = [], 0
        self.stats.add(rows)
        if self.writer is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.writer = _writer(self.file, self.table, rows)
        self.writer.write_table(rows, row_group_size=self.table.write.writer.row_group_rows)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def told(self) -> DataFile:
        return DataFile(
            self.path, self.file.stat().st_size, self.stats.rows, self.stats.text(), self.partition
        )


def write_files(
    folder: str, table: Table, batches: Iterable[pa.RecordBatch], *, is_copy: bool = False
) -> list[DataFile]:
    """Write rows into new files of a local folder: one for each partition value that is met.

    In a batch the rows of a partition value should stand together, for it is cut where the value changes.
    The rules of the table are checked on the way; of a copy the rows are those of another table, which is
    where they are checked.
    """
    parts: dict[PartitionValues, _PartitionFile] = {}
    check = RowCheck(table)
    try:
        for values, batch in _partitioned(table, batches if is_copy else check.watch(batches)):
            if values not in parts:
                parts[values] = _PartitionFile(folder, table, values)
            parts[values].add(batch)
            if sum(part.held for part in parts.values()) >= GROUP_BYTES:
                max(parts.values(), key=lambda part: part.held).flush()
        for part in parts.values():
            part.flush()
    finally:
        for part in parts.values():
            part.close()
    files = [part.told() for part in parts.values()]
    broken = check.broken()
    return [structs.replace(files[0], broken=broken), *files[1:]] if broken else files


def _partitioned(table: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
    """Rows of one partition value at a time."""
    if not table.write.partition_by:
        yield from (((), batch) for batch in batches if batch.num_rows)
        return
    pieces: dict[PartitionValues, list[pa.RecordBatch]] = {}
    held = 0
    for batch in batches:
        for values, piece in _pieces(table, batch):
            pieces.setdefault(values, []).append(piece)
        held += batch.nbytes
        if held >= CUT_BYTES:
            yield from _copied(pieces)
            held = 0
    yield from _copied(pieces)


def _copied(pieces: dict[PartitionValues, list[pa.RecordBatch]]) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
    """The pieces of each partition as one: slices would keep whole batches until the last one is written."""
    while pieces:
        values, found = pieces.popitem()
        yield values, pa.concat_batches(found)


def _pieces(table: Table, batch: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
    """A batch, cut where a partition value changes."""
    columns = {name: batch.column(name) for name in table.write.partition_by}
    runs = (pc.run_end_encode(column).run_ends.to_pylist() for column in columns.values())
    start = 0
    for end in sorted(set().union(*runs)):
        yield (
            tuple(_plain(name, column[start].as_py()) for name, column in columns.items()),
            batch.slice(start, end - start),
        )
        start = end


def _plain(column: str, value: object) -> str:
    if not isinstance(value, str) or not PLAIN.fullmatch(value):
        raise ContractError(
            f"{column} = {value!r} cannot be the name of a folder", "partition by columns of plain words"
        )
    return value


def write_on_executors(rows: DataFrame, write: Callable[[Batches], Iterable[DataFile]]) -> list[DataFile]:
    """The files that `write` makes of the rows of each task, on the executors."""

    def run(batches: Batches) -> Batches:
        for file in write(batches):
            yield pa.RecordBatch.from_pydict({"file": [json.encode(file).decode()]})

    found = rows.mapInArrow(run, "file string").collect()
    return [json.decode(row["file"], type=DataFile) for row in found]


def _text_leaves(columns: Iterable[Column], lead: str = "") -> Iterator[str]:
    """The paths of text columns, as Parquet spells them."""
    for column in columns:
        path = f"{lead}{column.name}" + (".list.element" if column.array else "")
        if column.type == "struct":
            yield from _text_leaves(column.fields, f"{path}.")
        elif column.type == "string":
            yield path


def _writer(path: Path, table: Table, first: pa.Table) -> pq.ParquetWriter:
    """A writer for a file whose first row group is known."""
    writer = table.write.writer
    # Of numbers, which are positions and counts, a dictionary costs time and makes files larger. A column
    # with a bloom filter has none in files of Spark either (`layout.table_properties`).
    without = {*writer.dictionary_off, *table.write.partition_by, *(b.column for b in writer.bloom_filters)}
    texts = [] if not writer.dictionary else list(_text_leaves(table.columns))
    group = min(first.num_rows, writer.row_group_rows or first.num_rows)
    return pq.ParquetWriter(
        path,
        first.schema,
        compression="none" if writer.compression == "uncompressed" else writer.compression,
        use_dictionary=[leaf for leaf in texts if leaf.split(".")[0] not in without],
        # Only these are ever filtered by; footers with bounds of every nested field would be long.
        write_statistics=list(resolve_stats_columns(table)),
        # Sized by the rows that are there: for those expected it would add a megabyte to the smallest file.
        bloom_filter_options={
            bloom.column: {"ndv": min(bloom.ndv, group), "fpp": bloom.fpp} for bloom in writer.bloom_filters
        },
    )
