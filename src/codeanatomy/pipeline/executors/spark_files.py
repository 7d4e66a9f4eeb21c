"""Write the rows of tables to data files on executors, each table in its order, from a frame of pieces.

    write_tables(frame, writes, sizes, samples, cores, inherit)["cpg_edges_by_dst"]   # [DataFile(...), ...]

    few bytes                several tables in one job: a task takes a group of tables
    order of the pieces      nodes (repository, file) and edges (repository, path), by keys of their pieces
    another order            copies of the edges, properties: sorted by executors (`sorted_tables`)

A job costs a quarter of a second before it does anything, and in a new JVM more, which is why small tables
share jobs. Why executors write Arrow files where they can: `docs/writers.md` has the measurements beside
Spark's own sort and writer. Tests: `tests/spark/test_sorted_tables.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import json
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import unpack_rows
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.write.data_files import Batches, write_files, write_on_executors
from codeanatomy.pipeline.executors.executor import TableWrite
from codeanatomy.pipeline.executors.sorted_tables import write_in_order, write_sorted
from codeanatomy.pipeline.pieces import MB, in_batches

# Packed bytes of all tables that are few; in memory they are some times that.
FEW_BYTES = 32 * MB
# Packed bytes that make one byte of a table's files, measured on the standard library.
PACKED_BYTES_PER_FILE_BYTE = 2
# Tables that are written at the same time: each waits for the driver now and then.
WRITERS = 4
NO_SAMPLES = pa.table({})

Files: TypeAlias = dict[str, list[DataFile]]
# Makes a function run in another thread with the properties of this one's jobs.
Inherit: TypeAlias = Callable[[Callable[[], Files]], Callable[[], Files]]


def write_tables(
    frame: DataFrame,
    writes: Sequence[TableWrite],
    sizes: Mapping[str, int],
    samples: Mapping[str, pa.Table],
    cores: int,
    inherit: Inherit,
) -> Files:
    """Write tables, the largest first because it takes longest.

    `sizes` are bytes of pieces by name, `samples` keys of some of their rows.
    """
    present = sorted((each for each in writes if sizes.get(each.name)), key=lambda each: sizes[each.name])
    totals = accumulate(sizes[write.name] for write in present)
    # Only there, rows are completed with constants: those of failures, which are few.
    few = [each for each, total in zip(present, totals, strict=True) if total <= FEW_BYTES or each.constants]
    jobs: list[Callable[[], Files]] = [
        partial(_write_table, frame, each, sizes[each.name], samples.get(each.name, NO_SAMPLES))
        for each in reversed(present)
        if each not in few
    ]
    groups = _groups(few, sizes, 1 if jobs else cores)
    jobs += [partial(write_together, frame, group) for group in groups]
    files: Files = {write.table.name: [] for write in writes}
    with ThreadPoolExecutor(WRITERS) as pool:
        for made in pool.map(lambda job: job(), [inherit(job) for job in jobs]):
            files.update(made)
    return files


def _groups(writes: Sequence[TableWrite], sizes: Mapping[str, int], number: int) -> list[list[TableWrite]]:
    """Divide tables into groups of about equal bytes."""
    groups: list[list[TableWrite]] = [[] for _ in range(number)]
    for write in reversed(writes):
        min(groups, key=lambda group: sum(sizes[each.name] for each in group)).append(write)
    return [group for group in groups if group]


def write_together(frame: DataFrame, writes: Sequence[TableWrite]) -> Files:
    """Write the rows of several tables as data files in one task."""
    names = sorted({write.name for write in writes})

    def write(batches: Batches) -> Batches:
        streams: dict[str, list[bytes]] = {name: [] for name in names}
        for piece in in_batches(batches):
            streams[piece.name].append(piece.data)
        for each in writes:
            rows = (batch for data in streams[each.name] for batch in unpack_rows(data))
            for file in write_in_order(each, rows):
                yield pa.RecordBatch.from_pydict(
                    {"name": [each.table.name], "file": [json.encode(file).decode()]}
                )

    pieces = frame.where(F.col("name").isin(*names)).coalesce(1)
    files: Files = {}
    for row in pieces.mapInArrow(write, "name string, file string").collect():
        files.setdefault(row["name"], []).append(json.decode(row["file"], type=DataFile))
    return files


def _write_table(frame: DataFrame, write: TableWrite, packed_bytes: int, samples: pa.Table) -> Files:
    """Write the files of a table, one task per file."""
    table, size = write.table, packed_bytes // PACKED_BYTES_PER_FILE_BYTE
    pieces = frame.where(F.col("name") == write.name)
    if is_in_piece_order(table) and not write.is_copy:
        return {table.name: write_ordered(pieces, table, write.folder, size)}
    data = pieces.select("data")
    files = write_sorted(data, table, write.folder, size, samples, is_copy=write.is_copy)
    return {table.name: files}


def is_in_piece_order(table: Table) -> bool:
    """Return whether the keys of pieces, files or paths, order a table's rows within partitions."""
    keys = [name for name in table.ordering if name not in table.write.partition_by][:2]
    return bool(keys) and keys[0] == "repo_id" and keys[-1] in (table.owner, "file_id", "path")


def write_ordered(pieces: DataFrame, table: Table, folder: NewFiles, size: int) -> list[DataFile]:
    """Write the rows of a table as data files in the order of the pieces' keys."""
    packed = pieces.select("repo_id", "key", "data")
    files = math.ceil(size / table.write.target_file_size)
    shares = packed.repartitionByRange(files, "repo_id", "key") if files > 1 else packed.coalesce(1)

    def write(batches: Batches) -> list[DataFile]:
        streams: Iterator[Any] = (stream for batch in batches for stream in batch.column(2))
        rows = (batch for stream in streams for batch in unpack_rows(stream.as_buffer()))
        return write_files(folder, table, rows)

    return write_on_executors(shares.sortWithinPartitions("repo_id", "key"), write)
