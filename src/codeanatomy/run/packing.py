"""Rows on their way from Python steps to tables: a frame with a row per piece of work, a column per table.

    first_file_id  ast_files_v1       libcst_files_v1    counts
    file:-0aB...   <Arrow stream>     <Arrow stream>     [{requests, ast_files_v1, 18}, ...]

The frame is computed once, kept in Spark's cache on disk, and each table is then unpacked and committed from
its own column, all of them at the same time. On a local lake the executors write the data files themselves
(`storage.files`); elsewhere Spark does. Nothing passes through the driver but counts.

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from msgspec import structs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import unpacked
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.run.progress import watched
from codeanatomy.run.state import Run
from codeanatomy.storage.adopt import adopt_files, local_folder
from codeanatomy.storage.commit import Commit, replace_by_owner
from codeanatomy.storage.events import Committed
from codeanatomy.storage.files import write_file
from codeanatomy.storage.transaction import DataFile

FIRST = "first_file_id"
COUNTS = "counts"
COUNTS_TYPE = pa.list_(pa.struct({"repo_id": pa.string(), "name": pa.string(), "count": pa.int64()}))
COUNTS_DDL = "array<struct<repo_id: string, name: string, count: bigint>>"

# Packed bytes that make one byte of a table's files, measured on the standard library.
PACKED_BYTES_PER_FILE_BYTE = 2
# Commits at the same time: each waits for the log more than it computes.
COMMITTERS = 8

Batches: TypeAlias = Iterator[pa.RecordBatch]
# By repository: rows by table, and other things that are counted.
Counts: TypeAlias = Mapping[str, Mapping[str, int]]


def packed_ddl(tables: Sequence[str]) -> str:
    """The columns of the frame."""
    return ", ".join((f"{FIRST} string", *(f"{name} binary" for name in tables), f"{COUNTS} {COUNTS_DDL}"))


def packed_row(first: str, streams: Mapping[str, bytes], counts: Counts) -> pa.RecordBatch:
    """A row of the frame."""
    counted: list[dict[str, object]] = [
        {"repo_id": repo_id, "name": name, "count": count}
        for repo_id, named in counts.items()
        for name, count in named.items()
    ]
    # Without a repository: bytes of the packed rows, which pieces of several repositories share.
    counted += [{"repo_id": None, "name": name, "count": len(stream)} for name, stream in streams.items()]
    arrays = [pa.array([first])]
    arrays += [pa.array([stream], pa.binary()) for stream in streams.values()]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([counted], COUNTS_TYPE)], names=[FIRST, *streams, COUNTS]
    )


def count(gathered: DataFrame) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Counts by repository, and packed bytes by table. The first call does the work."""
    each = gathered.select(F.inline(COUNTS)).groupBy("repo_id", "name").agg(F.sum("count").alias("count"))
    found: dict[str | None, dict[str, int]] = {}
    for row in each.toLocalIterator():
        found.setdefault(row["repo_id"], {})[row["name"]] = row["count"]
    sizes = found.pop(None, {})
    return {repo_id: counts for repo_id, counts in found.items() if repo_id is not None}, sizes


def work_through(run: Run, step: str, gathered: DataFrame, said: Callable[[], str]) -> dict[str, int]:
    """Do the work, telling how far it is; packed bytes by table."""
    with run.step(step):
        counts, sizes = watched(lambda: count(gathered), lambda: run.progress.tell(step, said()))
        run.progress.tell(step, said(), last=True)
    run.count(counts)
    return sizes


def table_rows(gathered: DataFrame, name: str, columns: Sequence[Column]) -> DataFrame:
    """The rows of a table."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for stream in batch.column(0):
                yield from unpacked(stream.as_buffer())

    schema = ", ".join(f"`{column.name}` {column.ddl}" for column in columns)
    return gathered.select(name).mapInArrow(run, schema)


def replacements(
    run: Run, gathered: DataFrame, names: Sequence[str], sizes: Mapping[str, int]
) -> dict[str, Callable[[], Committed]]:
    """The commits of tables, the largest first: it takes longest."""
    ordered = sorted(names, key=lambda name: -sizes.get(name, 0))
    return {name: partial(replace_table, run, gathered, name, sizes.get(name, 0)) for name in ordered}


def replace_table(run: Run, gathered: DataFrame, name: str, packed_bytes: int) -> Committed:
    """Replace the repositories' rows in a table by those of its column."""
    owners, commit = sorted(run.listings), Commit(run.run_id)
    size = packed_bytes // PACKED_BYTES_PER_FILE_BYTE
    table, folder = run.store.table(name), local_folder(run.store, name)
    empty = not any(counts[name] for counts in run.counts.values())
    if folder is not None and (empty or table.ordering[:1] == (table.owner,)):
        files = [] if empty else write_files(gathered, table, folder, size)
        return adopt_files(run.store, name, files, owners, commit, by="repo_id")
    rows = table_rows(gathered, name, table.columns)
    return replace_by_owner(run.store, name, rows, owners, commit, by="repo_id", file_bytes=size)


def write_files(gathered: DataFrame, table: Table, folder: str, size: int) -> list[DataFile]:
    """The rows of a table as data files in its order, written where they are unpacked."""
    packed = gathered.select(FIRST, table.name)
    files = math.ceil(size / table.write.target_file_size)
    cut = packed.repartitionByRange(files, FIRST) if files > 1 else packed.coalesce(1)

    def run(batches: Batches) -> Batches:
        streams = (stream for batch in batches for stream in batch.column(1))
        rows = (batch for stream in streams for batch in unpacked(stream.as_buffer()))
        file = write_file(folder, table, rows)
        if file is not None:
            yield pa.RecordBatch.from_pylist([structs.asdict(file)])

    schema = "path string, size_bytes bigint, rows bigint, stats string"
    found = cut.sortWithinPartitions(FIRST).mapInArrow(run, schema)
    return [DataFile(**row.asDict()) for row in found.toLocalIterator()]


def commit_all(run: Run, commits: Mapping[str, Callable[[], Committed]]) -> None:
    """Commit tables at the same time, those named first first, and tell how far it is."""
    rows = 0
    with ThreadPoolExecutor(COMMITTERS) as pool:
        pending = {pool.submit(commit): name for name, commit in commits.items()}
        for ready, future in enumerate(as_completed(pending), start=1):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            done = future.result()
            run.committed[pending[future]] = done
            rows += done.rows
            said = f"{ready}/{len(commits)} tables, {rows:,} rows"
            run.progress.tell("commit", said, last=ready == len(commits))
