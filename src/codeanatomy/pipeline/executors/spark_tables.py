"""Write the rows of tables to data files on executors, each table in its order, in one Spark job.

    pieces        nodes [f1] [f2] [f3]    edges [a.py] [b.py]       as tasks have made them
    plan_tables   nodes: files f1.. f3..  edges_by_dst: cut at n4   from sizes and samples that came with them
    split         (task 0, nodes, file 0, [f1]) (task 1, edges_by_dst, file 1, [n7 n5]) ...
    exchange      task 0: nodes file 0: [f1] [f2] ...   task 1: nodes file 1: [f3] ..., edges_by_dst ...
    write         part-..., part-..., ...

Tables in the order of the pieces' keys (nodes: repository and file, edges: repository and path) are cut
between pieces; others (copies of the edges, properties) between rows, and sorted range by range
(`sorted_tables`). Small tables share tasks: a task costs some time before it does anything.

Why executors write Arrow files: `docs/writers.md` has the measurements beside Spark's own sort and writer.
Tests: `tests/spark/test_sorted_tables.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import json
from pyspark.sql import DataFrame

from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.data_files import Batches, write_files
from codeanatomy.pipeline.executors.executor import TableWrite
from codeanatomy.pipeline.executors.sorted_tables import (
    RANGE_BYTES,
    SPLIT_BYTES,
    Cut,
    choose_cuts,
    in_order,
    range_keys,
    split_rows,
)
from codeanatomy.pipeline.tasks.pieces import MB, PIECE_BYTES, in_batches

# Packed bytes of all tables that are few; in memory they are some times that.
FEW_BYTES = 32 * MB
# Packed bytes that make one byte of a table's files, measured on the standard library.
PACKED_BYTES_PER_FILE_BYTE = 2
NO_SAMPLES = pa.table({})

# Repository and key of a piece.
PieceKey: TypeAlias = tuple[str, str]
# Task, table, file and range; repository, key and rows of a piece.
SplitRow: TypeAlias = tuple[int, int, int, int, str, str, bytes]
SPLIT = pa.schema(
    {
        "task": pa.int32(),
        "table": pa.int32(),
        "file": pa.int32(),
        "range": pa.int32(),
        "repo_id": pa.string(),
        "key": pa.string(),
        "data": pa.binary(),
    }
)
SPLIT_DDL = "task int, table int, file int, range int, repo_id string, key string, data binary"
WRITTEN_DDL = "name string, file string"


class TablePlan(NamedTuple):
    """How the rows of a table are divided into data files, and these into tasks."""

    write: TableWrite
    # Where files begin, of a table in the order of pieces; else where ranges begin.
    piece_cuts: tuple[PieceKey, ...] = ()
    row_cuts: tuple[Cut, ...] = ()
    # Columns by which the range of a row is found.
    keys: tuple[str, ...] = ()
    # Spark task of each file.
    tasks: tuple[int, ...] = (0,)

    @property
    def is_in_piece_order(self) -> bool:
        """Whether its rows are in order if its pieces are."""
        return is_in_piece_order(self.write.table) and not self.write.is_copy


class TablesPlan(NamedTuple):
    """The tables of a job, and its number of tasks that write."""

    tables: tuple[TablePlan, ...]
    tasks: int


def plan_tables(
    writes: Sequence[TableWrite],
    sizes: Mapping[str, int],
    piece_keys: Mapping[str, Sequence[PieceKey]],
    samples: Mapping[str, pa.Table],
    cores: int,
) -> TablesPlan:
    """Divide the tables that have rows into files, and the files into tasks, the largest first.

    By name of the pieces: `sizes` are bytes, `piece_keys` keys of some of them, `samples` keys of some rows.
    """
    present = sorted((each for each in writes if sizes.get(each.name)), key=lambda each: -sizes[each.name])
    divided = [
        _divide(each, sizes[each.name], piece_keys.get(each.name, ()), samples.get(each.name, NO_SAMPLES))
        for each in present
    ]
    is_few = sum(sizes[each.name] for each in present) <= FEW_BYTES
    files = [
        (sizes[plan.write.name] / count, number)
        for number, (plan, count) in enumerate(divided)
        for _ in range(count)
    ]
    loads = [0.0] * (min(cores, len(files)) if is_few else len(files))
    tasks: list[list[int]] = [[] for _ in divided]
    for size, number in sorted(files, key=lambda file: (-file[0], file[1])):
        task = loads.index(min(loads))
        loads[task] += size
        tasks[number].append(task)
    tables = (plan._replace(tasks=tuple(own)) for (plan, _), own in zip(divided, tasks, strict=True))
    return TablesPlan(tuple(tables), len(loads))


def _divide(
    write: TableWrite, packed_bytes: int, piece_keys: Sequence[PieceKey], samples: pa.Table
) -> tuple[TablePlan, int]:
    """Return where files and ranges of a table begin, and its number of files."""
    plan, size = TablePlan(write), packed_bytes // PACKED_BYTES_PER_FILE_BYTE
    files = max(1, math.ceil(size / write.table.write.target_file_size))
    if plan.is_in_piece_order:
        ordered = sorted(set(piece_keys))
        places = sorted({len(ordered) * number // files for number in range(1, files)} - {0})
        cuts = tuple(ordered[place] for place in places)
        return plan._replace(piece_cuts=cuts), len(cuts) + 1
    ranges = files * math.ceil(size / files / RANGE_BYTES)
    row_cuts = choose_cuts(samples, write.table, ranges) if ranges > 1 else []
    keys = range_keys(write.table, samples.column_names) if row_cuts else ()
    return plan._replace(row_cuts=tuple(row_cuts), keys=keys), min(files, len(row_cuts) + 1)


def is_in_piece_order(table: Table) -> bool:
    """Return whether the keys of pieces, files or paths, order a table's rows within partitions."""
    keys = [name for name in table.ordering if name not in table.write.partition_by][:2]
    return bool(keys) and keys[0] == "repo_id" and keys[-1] in (table.owner, "file_id", "path")


def written_files(pieces: DataFrame, plan: TablesPlan) -> DataFrame:
    """Return the frame that writes the tables: a row for each data file, with its table."""
    tables = plan.tables

    def split(batches: Batches) -> Batches:
        yield from split_pieces(tables, batches)

    def write(batches: Batches) -> Batches:
        yield from write_tables(tables, batches)

    exchanged = pieces.mapInArrow(split, SPLIT_DDL).repartitionById(plan.tasks, "task")
    ordered = exchanged.sortWithinPartitions("table", "file", "range", "repo_id", "key")
    return ordered.mapInArrow(write, WRITTEN_DDL)


def split_pieces(tables: Sequence[TablePlan], batches: Batches) -> Batches:
    """Send the rows of pieces to the tasks that write their files: yield rows of SPLIT, on an executor."""
    whole: dict[str, list[int]] = {}
    cut: dict[str, list[int]] = {}
    for number, plan in enumerate(tables):
        (cut if plan.row_cuts else whole).setdefault(plan.write.name, []).append(number)
    waiting: list[SplitRow] = []
    streams: dict[str, list[bytes]] = {}
    sizes: Counter[str] = Counter()
    for piece in in_batches(batches):
        for number in whole.get(piece.name, ()):
            plan = tables[number]
            file = bisect_right(plan.piece_cuts, (piece.repo_id, piece.key))
            waiting.append((plan.tasks[file], number, file, 0, piece.repo_id, piece.key, piece.data))
        if piece.name in cut:
            streams.setdefault(piece.name, []).append(piece.data)
            sizes[piece.name] += len(piece.data)
            if sizes[piece.name] >= SPLIT_BYTES:
                del sizes[piece.name]
                waiting += _split_ranges(tables, cut[piece.name], streams.pop(piece.name))
        if sum(len(each[-1]) for each in waiting) >= PIECE_BYTES:
            yield _split_batch(waiting)
            waiting = []
    for name, rest in streams.items():
        waiting += _split_ranges(tables, cut[name], rest)
    if waiting:
        yield _split_batch(waiting)


def _split_ranges(
    tables: Sequence[TablePlan], numbers: Iterable[int], streams: Iterable[bytes]
) -> Iterator[SplitRow]:
    """Split rows into the ranges of each of some tables, which have the same rows."""
    batches = [rows for stream in streams for rows in unpack_rows(stream)]
    if not batches:
        return
    rows = pa.concat_batches(batches)
    for number in numbers:
        plan = tables[number]
        files, ranges = len(plan.tasks), len(plan.row_cuts) + 1
        for place, part in split_rows(rows, plan.keys, plan.row_cuts):
            file = place * files // ranges
            yield plan.tasks[file], number, file, place, "", "", pack_rows(part)


def _split_batch(rows: Iterable[SplitRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SPLIT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SPLIT)


def write_tables(tables: Sequence[TablePlan], batches: Batches) -> Batches:
    """Write the data files of a task, on an executor: yield table and description of each."""
    rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
    for number, of_table in groupby(rows, key=lambda row: row[1].as_py()):
        plan = tables[number]
        for _, of_file in groupby(of_table, key=lambda row: row[2].as_py()):
            for file in _write_file(plan, of_file):
                columns = {"name": [plan.write.table.name], "file": [json.encode(file).decode()]}
                yield pa.RecordBatch.from_pydict(columns)


def _write_file(plan: TablePlan, rows: Iterable[Sequence[pa.Scalar]]) -> list[DataFile]:
    write = plan.write
    if plan.is_in_piece_order:
        ordered = _unpack(rows)
    else:
        ranges = (part for _, part in groupby(rows, key=lambda row: row[3].as_py()))
        ordered = (batch for part in ranges for batch in in_order(write.table.sort_keys, _unpack(part)))
    return write_files(write.folder, write.table, ordered, is_copy=write.is_copy)


def _unpack(rows: Iterable[Sequence[pa.Scalar]]) -> Batches:
    return (batch for row in rows for batch in unpack_rows(row[6].as_buffer()))


def files_by_table(written: pa.Table) -> dict[str, list[DataFile]]:
    """Return the data files that the frame of `written_files` has yielded."""
    files: dict[str, list[DataFile]] = {}
    for name, file in zip(*(column.to_pylist() for column in written.columns), strict=True):
        files.setdefault(name, []).append(json.decode(file, type=DataFile))
    return files
