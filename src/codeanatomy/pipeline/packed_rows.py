"""Carry rows from Python steps to tables: a frame with one row per piece of work and one column per table.

    repo_id   first_file_id  ast_files_v1    libcst_files_v1  counts
    requests  file:-0aB...   <Arrow stream>  <Arrow stream>   [{requests, ast_files_v1, 18}, ...]

The frame is computed once, kept in Spark's cache on disk, and each table is then unpacked and committed from
its own column, all of them at the same time. On a local lake the executors write the data files themselves
(`delta.write.data_files`): in the order of the frame's rows where that is the table's order, otherwise sorted
(`pipeline.sorted_tables`). On other stores Spark writes. Only counts pass through the driver.

Tests: `tests/spark/test_build.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from codeanatomy.arrow import arrow_schema, unpack_rows
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.adopt import adopt_files, local_folder
from codeanatomy.delta.write.commit import append, replace_by_owner
from codeanatomy.delta.write.data_files import write_files, write_on_executors
from codeanatomy.errors import NeedsSpark
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.small_tables import FEW_BYTES, PackedTable, in_groups
from codeanatomy.pipeline.sorted_tables import in_order, sort_keys, write_sorted
from codeanatomy.progress import run_with_progress
from codeanatomy.spark.metrics import operator_metrics
from codeanatomy.spark.plan_columns import plan_columns
from codeanatomy.spark.plans import plan_texts

REPO = "repo_id"
FIRST = "first_file_id"
PATH = "path"
COUNTS = "counts"
COUNTED = pa.schema({"repo_id": pa.string(), "name": pa.string(), "count": pa.int64()})
COUNTED_DDL = "repo_id string, name string, count bigint"
COUNTS_TYPE = pa.list_(pa.struct(COUNTED))
COUNTS_DDL = f"array<struct<{COUNTED_DDL}>>"

# Packed bytes that make one byte of a table's files, measured on the standard library.
PACKED_BYTES_PER_FILE_BYTE = 2
# Commits at the same time: each waits for the log more than it computes.
COMMITTERS = 8

Batches: TypeAlias = Iterator[pa.RecordBatch]
# By repository: rows by table, and other counters.
Counts: TypeAlias = Mapping[str, Mapping[str, int]]


def packed_ddl(tables: Sequence[str], *keys: str) -> str:
    """Return the DDL of the frame; `keys` are further text columns that its rows can be ordered by."""
    texts = (f"{name} string" for name in (REPO, FIRST, *keys))
    return ", ".join((*texts, *(f"{name} binary" for name in tables), f"{COUNTS} {COUNTS_DDL}"))


def packed_row(
    repo_id: str, first: str | None, streams: Mapping[str, bytes], counts: Counts, **keys: str | None
) -> pa.RecordBatch:
    """Make a row of the frame: rows of a repository, sorted by file where there are several."""
    counted: list[dict[str, object]] = [
        {"repo_id": repo_id, "name": name, "count": count}
        for repo_id, named in counts.items()
        for name, count in named.items()
    ]
    # Without a repository: bytes of the packed rows.
    counted += [{"repo_id": None, "name": name, "count": len(stream)} for name, stream in streams.items()]
    arrays = [pa.array([text], pa.string()) for text in (repo_id, first, *keys.values())]
    arrays += [pa.array([stream], pa.binary()) for stream in streams.values()]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([counted], COUNTS_TYPE)], names=[REPO, FIRST, *keys, *streams, COUNTS]
    )


def count(gathered: DataFrame) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Return counts by repository and packed bytes by table. The first call computes the frame."""

    def sums(batches: Batches) -> Batches:
        """Add up the counts of a task; an exchange for a few numbers would cost three more jobs."""
        totals: Counter[tuple[str | None, str]] = Counter()
        for batch in batches:
            each = batch.column(0).flatten()
            keys = zip(each.field("repo_id").to_pylist(), each.field("name").to_pylist(), strict=True)
            for key, number in zip(keys, each.field("count").to_pylist(), strict=True):
                totals[key] += number
        rows = [(repo_id, name, number) for (repo_id, name), number in totals.items()]
        yield pa.RecordBatch.from_pylist(
            [dict(zip(COUNTED.names, row, strict=True)) for row in rows], COUNTED
        )

    counts: dict[str, dict[str, int]] = {}
    sizes: Counter[str] = Counter()
    for row in gathered.select(COUNTS).mapInArrow(sums, COUNTED_DDL).collect():
        of = sizes if row["repo_id"] is None else counts.setdefault(row["repo_id"], Counter())
        of[row["name"]] += row["count"]
    return counts, sizes


class StepResult(NamedTuple):
    """Rows and packed bytes that a step has computed, by table."""

    rows: Mapping[str, int]
    packed_bytes: Mapping[str, int]


def work_through(run: Run, step: str, gathered: DataFrame, status: Callable[[], str]) -> StepResult:
    """Compute a step's frame and report progress."""
    with run.timed(step):
        work = inheritable_thread_target(run.spark)(lambda: count(gathered))
        counts, sizes = run_with_progress(work, lambda: run.progress.update(step, status()))
        run.progress.update(step, status(), last=True)
    run.count(counts)
    rows: Counter[str] = Counter()
    for counted in counts.values():
        rows.update(counted)
    # While the frame is cached, its operators have their figures.
    run.plans[step], run.operators[step] = plan_texts(gathered), operator_metrics(gathered)
    for name, used in plan_columns(gathered).items():
        if name in run.pins:
            run.observed.refine(name, run.pins[name], used.filters, used.joins)
    return StepResult(rows, sizes)


def table_rows(gathered: DataFrame, name: str, columns: Sequence[Column]) -> DataFrame:
    """Unpack the rows of a table."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for stream in batch.column(0):
                yield from unpack_rows(stream.as_buffer())

    schema = ", ".join(f"`{column.name}` {column.ddl}" for column in columns)
    return gathered.select(name).mapInArrow(run, schema)


def replacements(
    run: Run,
    gathered: DataFrame,
    names: Sequence[str],
    worked: StepResult,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Callable[[], Committed]]:
    """Return the commits of tables, the largest first because it takes longest.

    `columns` names the column of a table that has none of its own: a copy in another order.
    """
    packed = {name: worked.packed_bytes.get(columns.get(name, name), 0) for name in names}
    local = [
        _part(run, gathered, name, columns.get(name, name), packed[name])
        for name in names
        if worked.rows[columns.get(name, name)] and local_folder(run.store, name) is not None
    ]
    files = (
        in_groups(gathered, local, run.spark.sparkContext.defaultParallelism)
        if sum(packed.values()) <= FEW_BYTES
        else {part.table.name: partial(_files, gathered, part) for part in local}
    )
    return {
        name: partial(_replace, run, gathered, name, columns.get(name, name), packed[name], files.get(name))
        for name in sorted(names, key=lambda name: -packed[name])
    }


def _replace(
    run: Run,
    gathered: DataFrame,
    name: str,
    column: str,
    packed_bytes: int,
    files: Callable[[], list[DataFile]] | None,
) -> Committed:
    """Replace the repositories' rows in a table by those of a column."""
    table = run.store.table(name)
    owners, commit = sorted(run.working(table.stage)), run.commit(table.stage)
    if local_folder(run.store, name) is not None:
        written = [] if files is None else files()
        run.check()
        return _adopt(run, name, written, owners, commit)
    size = packed_bytes // PACKED_BYTES_PER_FILE_BYTE
    rows = table_rows(gathered, column, table.columns)
    run.check()
    return replace_by_owner(run.spark_store, name, rows, owners, commit, by="repo_id", file_bytes=size)


def append_packed(
    run: Run, gathered: DataFrame, name: str, worked: StepResult, commit: Commit, **constants: str
) -> Committed:
    """Append the rows of a column to a table, with constant values for further columns."""
    table, folder = run.store.table(name), local_folder(run.store, name)
    if folder is None:
        columns = [column for column in table.columns if column.name not in constants]
        more = [F.lit(value).alias(key) for key, value in constants.items()]
        rows = table_rows(gathered, name, columns).select(*more, "*")
        size = worked.packed_bytes.get(name, 0) // PACKED_BYTES_PER_FILE_BYTE
        run.check()
        return append(run.spark_store, name, rows, commit, file_bytes=size)

    def write(batches: Batches) -> list[DataFile]:
        streams = (unpack_rows(stream.as_buffer()) for batch in batches for stream in batch.column(0))
        rows = (_with(table, batch, constants) for stream in streams for batch in stream)
        return write_files(folder, table, in_order(sort_keys(table), rows))

    files = write_on_executors(gathered.select(name).coalesce(1), write) if worked.rows[name] else []
    run.check()
    return _adopt(run, name, files, (), commit)


def _adopt(
    run: Run, name: str, files: Sequence[DataFile], owners: Sequence[str], commit: Commit
) -> Committed:
    try:
        return adopt_files(run.store, name, files, owners, commit, by="repo_id")
    except NeedsSpark:
        # For example a table that gets a column and has rows of other repositories.
        return adopt_files(run.spark_store, name, files, owners, commit, by="repo_id")


def _with(table: Table, rows: pa.RecordBatch, constants: Mapping[str, str]) -> pa.RecordBatch:
    arrays = [
        pa.repeat(constants[name], rows.num_rows) if name in constants else rows.column(name)
        for name in table.column_names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


def _part(run: Run, gathered: DataFrame, name: str, column: str, packed_bytes: int) -> PackedTable:
    table = run.store.table(name)
    keys = frame_order(table)
    in_frame = keys if set(keys) <= set(gathered.columns) else ()
    return PackedTable(table, run.store.location(name), column, in_frame, packed_bytes)


def _files(gathered: DataFrame, part: PackedTable) -> list[DataFile]:
    """Write the files of a table, one task per file."""
    table, size = part.table, part.packed_bytes // PACKED_BYTES_PER_FILE_BYTE
    if part.keys:
        return write_ordered(gathered, part.column, table, part.folder, size, part.keys)
    is_copy = part.column != table.name
    return write_sorted(gathered.select(part.column), table, part.folder, size, is_copy=is_copy)


def frame_order(table: Table) -> tuple[str, ...]:
    """Return the frame keys that order a table's rows within partitions: repository and file, or none."""
    by_file = {table.owner: FIRST, "file_id": FIRST, "path": PATH}
    match [name for name in table.ordering if name not in table.write.partition_by]:
        case ["repo_id", file, *_] if file in by_file:
            return REPO, by_file[file]
        case _:
            return ()


def write_ordered(
    gathered: DataFrame, column: str, table: Table, folder: str, size: int, keys: Sequence[str]
) -> list[DataFile]:
    """Write the rows of a table as data files in the order of frame keys, where they are unpacked."""
    order = tuple(dict.fromkeys((*keys, FIRST)))
    packed = gathered.select(*order, column)
    files = math.ceil(size / table.write.target_file_size)
    cut = packed.repartitionByRange(files, *keys) if files > 1 else packed.coalesce(1)

    def write(batches: Batches) -> list[DataFile]:
        streams = (stream for batch in batches for stream in batch.column(0))
        return write_files(
            folder, table, (rows for stream in streams for rows in unpack_rows(stream.as_buffer()))
        )

    return write_on_executors(cut.sortWithinPartitions(*order).select(column), write)


def commit_all(run: Run, step: str, commits: Mapping[str, Callable[[], Committed]]) -> None:
    """Commit tables concurrently, in the given order, and report progress."""
    rows = 0
    inherit = inheritable_thread_target(run.spark)
    with ThreadPoolExecutor(COMMITTERS) as pool:
        pending = {pool.submit(inherit(commit)): name for name, commit in commits.items()}
        for ready, future in enumerate(as_completed(pending), start=1):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            done = future.result()
            run.done(step, pending[future], done)
            rows += done.rows
            status = f"{ready}/{len(commits)} tables, {rows:,} rows"
            run.progress.update("commit", status, last=ready == len(commits))
