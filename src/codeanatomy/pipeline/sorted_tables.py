"""Sort packed rows on executors, as Arrow, for tables whose order is not that of the frame.

    streams            [n7 n1 n4] [n2 n9] [n3]       one row of the frame each, as the step made them
    sample keys        n1 n4 n9                      one per so many bytes, sent to the driver
    cut                before n4                     into ranges that fit into a task
    split              0:[n1 n2] 1:[n7 n4 n9] 0:[n3]
    exchange           file 0: 0:[n1 n2] 0:[n3]      file 1: 1:[n7 n4 n9]
    sort and write     part-...: n1 n2 n3            part-...: n4 n7 n9

A file has one range or several, in their order, so files do not overlap and a task holds a range at a time.
Keys are the table's order and its primary key, so the same rows make the same files. Text is ordered by its
bytes and null comes first, as Spark has it. Rows that make a single range need neither sample nor exchange.

Measured on two cores with two million edges: a fifth of the time of Spark's own sort and writer.

Tests: `tests/spark/test_sorted_tables.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.data_files import Batches, write_files, write_on_executors
from codeanatomy.pipeline.executor import TableWrite

MB = 1024 * 1024
# Bytes that a range takes on disk; in memory it is five times that, and there twice while it is sorted.
RANGE_BYTES = 16 * MB
# Packed bytes for each key of the sample: a few hundred keys for a range make ranges about equal.
SAMPLE_BYTES = MB // 8
# Arrow bytes that are split at a time: pieces of single source files would be a few rows each.
SPLIT_BYTES = 64 * MB
# Rows that leave a sorted range at a time.
STEP_ROWS = 64 * 1024

PIECES = pa.schema({"file": pa.int32(), "range": pa.int32(), "piece": pa.binary()})
PIECES_DDL = "file int, range int, piece binary"

# Values of the sort keys; a range begins with one.
Cut: TypeAlias = tuple[Any, ...]


def write_sorted(
    streams: DataFrame, table: Table, folder: str, size: int, *, is_copy: bool = False
) -> list[DataFile]:
    """Write packed rows as data files in the table's order; `size` estimates their bytes on disk."""
    files = max(1, math.ceil(size / table.write.target_file_size))
    ranges = math.ceil(size / files / RANGE_BYTES)
    return write_ranges(streams, table, folder, files, ranges, is_copy=is_copy)


def write_ranges(
    streams: DataFrame,
    table: Table,
    folder: str,
    files: int,
    ranges: int,
    step: int = SAMPLE_BYTES,
    *,
    is_copy: bool = False,
) -> list[DataFile]:
    """Write at most `files` files of `ranges` ranges each; a key is sampled for every `step` packed bytes."""
    keys = sort_keys(table)
    cuts = sampled_cuts(streams, table, files * ranges, step) if files * ranges > 1 else []
    if cuts:
        pieces = split(streams, keys, cuts, files)
        ready = pieces.repartitionById(files, "file").sortWithinPartitions("file", "range")
    else:
        whole = streams.toDF("piece").coalesce(1)
        ready = whole.select(F.lit(0).alias("file"), F.lit(0).alias("range"), "piece")

    def write(batches: Batches) -> Iterator[DataFile]:
        rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
        for _, of_file in groupby(rows, key=lambda row: row[0].as_py()):
            parts = groupby(of_file, key=lambda row: row[1].as_py())
            ordered = (
                batch for _, part in parts for batch in in_order(keys, _pieces(row[2] for row in part))
            )
            yield from write_files(folder, table, ordered, is_copy=is_copy)

    return write_on_executors(ready, write)


def complete_rows(write: TableWrite, batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield rows with the columns of the table: with the constants, in the table's order of columns."""
    schema = arrow_schema(write.table)
    for batch in batches:
        arrays = [
            pa.repeat(write.constants[name], batch.num_rows)
            if name in write.constants
            else batch.column(name)
            for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def sort_keys(table: Table) -> tuple[str, ...]:
    """Return the sort columns: the table's order, then its primary key for ties."""
    return tuple(dict.fromkeys((*table.ordering, *table.primary_key)))


def sampled_cuts(streams: DataFrame, table: Table, ranges: int, step: int) -> list[Cut]:
    """Sample the keys at which all ranges but the first begin."""
    keys = sort_keys(table)
    fields = [table.column_names.index(key) for key in keys]

    def sample(batches: Batches) -> Batches:
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        # Packed bytes before the stream, and where the next sample stands among those of all streams.
        before, due = 0, step // 2
        for stream in (stream for batch in batches for stream in batch.column(0)):
            packed_rows = stream.as_buffer()
            with pa.ipc.open_stream(packed_rows, options=options) as reader:
                rows = reader.read_all().select(keys)
            end = before + packed_rows.size
            taken = [(place - before) * rows.num_rows // packed_rows.size for place in range(due, end, step)]
            due += step * len(taken)
            before = end
            if rows.num_rows:
                yield from rows.take(pa.array(taken, pa.int64())).combine_chunks().to_batches()

    ddl = ", ".join(f"`{key}` {table.column(key).ddl}" for key in keys)
    samples = _sorted(keys, streams.mapInArrow(sample, ddl).toArrow())
    places = sorted({samples.num_rows * number // ranges for number in range(1, ranges)} - {0})
    chosen = samples.take(pa.array(places, pa.int64())).to_pylist()
    return list(dict.fromkeys(tuple(row[key] for key in keys) for row in chosen))


def split(streams: DataFrame, keys: Sequence[str], cuts: Sequence[Cut], files: int) -> DataFrame:
    """Split the rows of all streams into pieces of one range, each of which belongs to one file."""
    ranges = len(cuts) + 1

    def run(batches: Batches) -> Batches:
        for rows in _joined(batches):
            for number, piece in split_rows(rows, keys, cuts):
                row = {"file": number * files // ranges, "range": number, "piece": pack_rows(piece)}
                yield pa.RecordBatch.from_pylist([row], PIECES)

    return streams.mapInArrow(run, PIECES_DDL)


def _joined(batches: Batches) -> Batches:
    """Concatenate the rows of many small streams."""
    group: list[pa.RecordBatch] = []
    held = 0
    for stream in (stream for batch in batches for stream in batch.column(0)):
        for rows in unpack_rows(stream.as_buffer()):
            group.append(rows)
            held += rows.nbytes
        if held >= SPLIT_BYTES:
            yield pa.concat_batches(group)
            group, held = [], 0
    if group:
        yield pa.concat_batches(group)


def split_rows(
    rows: pa.RecordBatch, keys: Sequence[str], cuts: Sequence[Cut]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield number and rows of each range that has any."""
    columns = [rows.column(key) for key in keys]
    numbers = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
    for cut in cuts:
        numbers = pc.add(numbers, pc.invert(_before(columns, cut)).cast(pa.int32()))
    order = pc.array_sort_indices(numbers)
    together, runs = rows.take(order), pc.run_end_encode(numbers.take(order))
    start = 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield number, together.slice(start, end - start)
        start = end


def _before(columns: Sequence[pa.Array], cut: Cut) -> pa.Array:
    """Return a mask of the rows that sort before a key."""
    column, value = columns[0], pa.scalar(cut[0], columns[0].type)
    if value.is_valid:
        less = pc.fill_null(pc.less(column, value), True)
        same = pc.fill_null(pc.equal(column, value), False)
    else:
        less, same = pa.repeat(pa.scalar(False), len(column)), pc.is_null(column)
    if len(columns) == 1 or not pc.any(same).as_py():
        return less
    return pc.or_(less, pc.and_(same, _before(columns[1:], cut[1:])))


def _pieces(streams: Iterable[pa.Scalar]) -> Batches:
    return (batch for stream in streams for batch in unpack_rows(stream.as_buffer()))


def in_order(keys: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield the rows of a range in order."""
    parts = list(batches)
    if not parts:
        return
    rows = pa.concat_batches(parts)
    del parts
    order = pc.sort_indices(rows, sort_keys=_ascending(keys))
    # In slices, so that memory does not hold all rows twice.
    for start in range(0, rows.num_rows, STEP_ROWS):
        yield rows.take(order.slice(start, STEP_ROWS))


def _sorted(keys: Sequence[str], rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows, sort_keys=_ascending(keys)))


def _ascending(keys: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(key, "ascending", "at_start") for key in keys]
