"""Rows on their way from Python steps to tables: a frame with a row per piece of work, a column per table.

    first_file_id  ast_files_v1       libcst_files_v1    counts
    file:-0aB...   <Arrow stream>     <Arrow stream>     [{requests, ast_files_v1, 18}, ...]

The frame is computed once, kept in Spark's cache on disk, and each table is then unpacked and committed from
its own column, all of them at the same time. On a local lake the executors write the data files themselves
(`storage.files`): in the order of the frame's rows where that is the table's order, else sorted (`sorting`).
Elsewhere Spark writes. Nothing passes through the driver but counts.

Tests: `tests/test_build.py`.
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

from codeanatomy.arrow import unpacked
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.run.progress import watched
from codeanatomy.run.sorting import write_sorted
from codeanatomy.run.state import Run
from codeanatomy.storage.adopt import adopt_files, local_folder
from codeanatomy.storage.commit import replace_by_owner
from codeanatomy.storage.events import Committed
from codeanatomy.storage.files import write_files, written
from codeanatomy.storage.plans import plan_texts
from codeanatomy.storage.transaction import DataFile

FIRST = "first_file_id"
PATH = "path"
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


def packed_ddl(tables: Sequence[str], *keys: str) -> str:
    """The columns of the frame; `keys` are further texts that its rows can be ordered by."""
    texts = (f"{name} string" for name in (FIRST, *keys))
    return ", ".join((*texts, *(f"{name} binary" for name in tables), f"{COUNTS} {COUNTS_DDL}"))


def packed_row(
    first: str | None, streams: Mapping[str, bytes], counts: Counts, **keys: str | None
) -> pa.RecordBatch:
    """A row of the frame."""
    counted: list[dict[str, object]] = [
        {"repo_id": repo_id, "name": name, "count": count}
        for repo_id, named in counts.items()
        for name, count in named.items()
    ]
    # Without a repository: bytes of the packed rows, which pieces of several repositories share.
    counted += [{"repo_id": None, "name": name, "count": len(stream)} for name, stream in streams.items()]
    arrays = [pa.array([text], pa.string()) for text in (first, *keys.values())]
    arrays += [pa.array([stream], pa.binary()) for stream in streams.values()]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([counted], COUNTS_TYPE)], names=[FIRST, *keys, *streams, COUNTS]
    )


def count(gathered: DataFrame) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Counts by repository, and packed bytes by table. The first call does the work."""
    each = gathered.select(F.inline(COUNTS)).groupBy("repo_id", "name").agg(F.sum("count").alias("count"))
    found: dict[str | None, dict[str, int]] = {}
    for row in each.toLocalIterator():
        found.setdefault(row["repo_id"], {})[row["name"]] = row["count"]
    sizes = found.pop(None, {})
    return {repo_id: counts for repo_id, counts in found.items() if repo_id is not None}, sizes


class Worked(NamedTuple):
    """What a step has made, by table."""

    rows: Mapping[str, int]
    packed_bytes: Mapping[str, int]


def work_through(run: Run, step: str, gathered: DataFrame, said: Callable[[], str]) -> Worked:
    """Do the work, telling how far it is."""
    with run.timed(step):
        work = inheritable_thread_target(lambda: count(gathered))
        counts, sizes = watched(work, lambda: run.progress.tell(step, said()))
        run.progress.tell(step, said(), last=True)
    run.count(counts)
    rows: Counter[str] = Counter()
    for counted in counts.values():
        rows.update(counted)
    # While the frame is cached, its operators have their figures.
    run.plans[step] = plan_texts(gathered)
    return Worked(rows, sizes)


def table_rows(gathered: DataFrame, name: str, columns: Sequence[Column]) -> DataFrame:
    """The rows of a table."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for stream in batch.column(0):
                yield from unpacked(stream.as_buffer())

    schema = ", ".join(f"`{column.name}` {column.ddl}" for column in columns)
    return gathered.select(name).mapInArrow(run, schema)


def replacements(
    run: Run,
    gathered: DataFrame,
    names: Sequence[str],
    worked: Worked,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Callable[[], Committed]]:
    """The commits of tables, the largest first: it takes longest.

    `columns` names the column of a table that has none of its own: a copy in another order.
    """
    packed = {name: worked.packed_bytes.get(columns.get(name, name), 0) for name in names}
    return {
        name: partial(replace_table, run, gathered, name, worked, columns.get(name))
        for name in sorted(names, key=lambda name: -packed[name])
    }


def replace_table(
    run: Run, gathered: DataFrame, name: str, worked: Worked, column: str | None = None
) -> Committed:
    """Replace the repositories' rows in a table by those of its column, or of the one that is named."""
    step, source = run.store.table(name).stage, column or name
    owners, commit = sorted(run.working(step)), run.commit(step)
    size = worked.packed_bytes.get(source, 0) // PACKED_BYTES_PER_FILE_BYTE
    table, folder = run.store.table(name), local_folder(run.store, name)
    if folder is None:
        found = table_rows(gathered, source, table.columns)
        return replace_by_owner(run.store, name, found, owners, commit, by="repo_id", file_bytes=size)
    files = _files(gathered, source, table, folder, size) if worked.rows[source] else []
    return adopt_files(run.store, name, files, owners, commit, by="repo_id", is_copy=column is not None)


def _files(gathered: DataFrame, column: str, table: Table, folder: str, size: int) -> list[DataFile]:
    key = frame_order(table)
    if key is None or key not in gathered.columns:
        return write_sorted(gathered.select(column), table, folder, size)
    return write_ordered(gathered, column, table, folder, size, key)


def frame_order(table: Table) -> str | None:
    """The key of the frame that puts a table's rows in order, partitions apart; none where no key does."""
    clusters = (name for name in table.ordering if name not in table.write.partition_by)
    return {table.owner: FIRST, "file_id": FIRST, "path": PATH}.get(next(clusters, None))


def write_ordered(
    gathered: DataFrame, column: str, table: Table, folder: str, size: int, key: str
) -> list[DataFile]:
    """The rows of a table as data files in the order of the frame's key, written where they are unpacked."""
    keys = tuple(dict.fromkeys((key, FIRST)))
    packed = gathered.select(*keys, column)
    files = math.ceil(size / table.write.target_file_size)
    cut = packed.repartitionByRange(files, key) if files > 1 else packed.coalesce(1)

    def write(batches: Batches) -> list[DataFile]:
        streams = (stream for batch in batches for stream in batch.column(0))
        return write_files(
            folder, table, (rows for stream in streams for rows in unpacked(stream.as_buffer()))
        )

    return written(cut.sortWithinPartitions(*keys).select(column), write)


def commit_all(run: Run, step: str, commits: Mapping[str, Callable[[], Committed]]) -> None:
    """Commit tables at the same time, those named first first, and tell how far it is."""
    rows = 0
    with ThreadPoolExecutor(COMMITTERS) as pool:
        pending = {pool.submit(inheritable_thread_target(commit)): name for name, commit in commits.items()}
        for ready, future in enumerate(as_completed(pending), start=1):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            done = future.result()
            run.done(step, pending[future], done)
            rows += done.rows
            said = f"{ready}/{len(commits)} tables, {rows:,} rows"
            run.progress.tell("commit", said, last=ready == len(commits))
