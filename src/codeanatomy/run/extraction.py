"""The extract stage on Spark: files spread over tasks, read once, and committed table by table.

One job runs the witnesses on the executors and keeps their rows, packed by table, in Spark's cache on disk.
Then every table is unpacked and committed from its own column, all of them at the same time. Nothing passes
through the driver but the listing and some counts per repository.

    gathered = gather(spark, tasks, WITNESSES, options, counters)   # lazy: a row per chunk of files
    count(gathered)                                                 # runs the witnesses, fills the cache
    table_rows(gathered, "ast_files_v1")                            # the rows of a table

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeAlias, TypeVar

import pyarrow as pa
from msgspec import msgpack, structs
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from codeanatomy.catalog.spec import Table
from codeanatomy.extract.files import FAILURES, table_columns
from codeanatomy.extract.scip_index import VERSION as SCIP_VERSION
from codeanatomy.extract.scip_rows import SCIP
from codeanatomy.extract.shares import Sourced, spread
from codeanatomy.extract.testimony import Witness
from codeanatomy.extract.witnesses import WITNESSES
from codeanatomy.extract.worker import Packed, Task, extract_task, tables_of, unpacked
from codeanatomy.options import ExtractOptions
from codeanatomy.run.scip import scip_tasks
from codeanatomy.run.state import Run
from codeanatomy.storage.adopt import adopt_files, local_folder
from codeanatomy.storage.commit import Commit, append, replace_by_owner
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
POLL_SECONDS = 0.2

Done = TypeVar("Done")
Batches: TypeAlias = Iterator[pa.RecordBatch]
# By repository: rows by table, failures by extractor.
Counts: TypeAlias = dict[str, dict[str, int]]


def extract_stage(run: Run) -> None:
    """Read the files of all repositories, and commit what the witnesses say."""
    options = run.settings.extract
    cores = run.store.spark.sparkContext.defaultParallelism
    sources = [Sourced(repo_id, listing) for repo_id, listing in run.listings.items()]
    run.witness_versions.update({witness.table: witness.version for witness in WITNESSES})
    run.witness_versions[SCIP] = SCIP_VERSION
    with scip_tasks(run) as indexes:
        _extract(run, [*indexes, *spread(sources, options.partitions, cores)])


def _extract(run: Run, tasks: Sequence[Task]) -> None:
    total = sum(len(listing.entries) for listing in run.listings.values())
    counters = Counters(run.store.spark)
    gathered = gather(run.store.spark, tasks, WITNESSES, run.settings.extract, counters)

    def tell(*, last: bool = False) -> None:
        done, failures = counters.files.value, counters.failures.value
        run.progress.tell("extract", f"{done:,}/{total:,} files, {failures:,} failures", last=last)

    try:
        with run.step("extract"):
            counts, sizes = _watched(lambda: count(gathered), tell)
            tell(last=True)
        run.count(counts)
        with run.step("commit"):
            commit_tables(run, gathered, sizes)
    finally:
        gathered.unpersist()


def commit_tables(run: Run, gathered: DataFrame, sizes: dict[str, int]) -> None:
    """Replace the repositories' rows in every table, the failures' apart, all tables at the same time."""
    owners = sorted(run.listings)
    commit = Commit(run.run_id)
    rows = 0

    def one(name: str) -> Committed:
        size = sizes.get(name, 0) // PACKED_BYTES_PER_FILE_BYTE
        table, folder = run.store.table(name), local_folder(run.store, name)
        empty = name != FAILURES and not any(counts[name] for counts in run.counts.values())
        if folder is not None and (empty or table.ordering[:1] == ("file_id",)):
            files = [] if empty else write_files(gathered, table, folder, size)
            return adopt_files(run.store, name, files, owners, commit, by="repo_id")
        found = table_rows(gathered, name)
        if name == FAILURES:
            failures = found.select(F.lit(run.run_id).alias("run_id"), "*")
            return append(run.store, name, failures, commit, file_bytes=size)
        return replace_by_owner(run.store, name, found, owners, commit, by="repo_id", file_bytes=size)

    with ThreadPoolExecutor(COMMITTERS) as pool:
        # The largest first: it takes longest.
        names = sorted(tables_of(WITNESSES), key=lambda name: -sizes.get(name, 0))
        pending = {pool.submit(one, name): name for name in names}
        for ready, future in enumerate(as_completed(pending), start=1):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            done = future.result()
            run.committed[pending[future]] = done
            rows += done.rows
            run.progress.tell(
                "commit", f"{ready}/{len(names)} tables, {rows:,} rows", last=ready == len(names)
            )


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


def _watched(work: Callable[[], Done], tell: Callable[[], None]) -> Done:
    """Do the work in a thread, and tell how far it is."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not future.done():
            tell()
            time.sleep(POLL_SECONDS)
        return future.result()


class Counters:
    """How far the tasks are; told when a task ends."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self.files, self.failures = context.accumulator(0), context.accumulator(0)

    def add(self, packed: Packed) -> None:
        """Count a chunk, on an executor."""
        for counts in packed.counts.values():
            self.files += counts.get("repo_files_v1", 0)
            self.failures += counts[FAILURES]


def gather(
    spark: SparkSession,
    todo: Sequence[Task],
    witnesses: Sequence[Witness],
    options: ExtractOptions,
    counters: Counters,
) -> DataFrame:
    """A frame with a row per chunk of files and a column per table; one Spark task for each of ours."""
    # Each task decodes its own part only; the listing of a repository may be long.
    encoded = spark.sparkContext.broadcast([msgpack.encode(task) for task in todo])
    tables = tables_of(witnesses)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = msgpack.decode(encoded.value[number], type=Task)
                for packed in extract_task(task, witnesses, options):
                    counters.add(packed)
                    yield _row(tables, packed)

    columns = (f"{FIRST} string", *(f"{name} binary" for name in tables), f"{COUNTS} {COUNTS_DDL}")
    tasks = spark.range(0, len(todo), 1, len(todo))
    return tasks.mapInArrow(run, ", ".join(columns)).persist(StorageLevel.DISK_ONLY)


def _row(tables: Sequence[str], packed: Packed) -> pa.RecordBatch:
    counts: list[dict[str, object]] = [
        {"repo_id": repo_id, "name": name, "count": count}
        for repo_id, named in packed.counts.items()
        for name, count in named.items()
    ]
    # Without a repository: bytes of the packed rows, which chunks of several repositories share.
    counts += [{"repo_id": None, "name": name, "count": len(packed.streams[name])} for name in tables]
    arrays = [pa.array([packed.first])]
    arrays += [pa.array([packed.streams[name]], pa.binary()) for name in tables]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([counts], COUNTS_TYPE)], names=[FIRST, *tables, COUNTS]
    )


def count(gathered: DataFrame) -> tuple[Counts, dict[str, int]]:
    """Counts by repository, and packed bytes by table. The first call runs the witnesses."""
    each = gathered.select(F.inline(COUNTS)).groupBy("repo_id", "name").agg(F.sum("count").alias("count"))
    found: dict[str | None, dict[str, int]] = {}
    for row in each.toLocalIterator():
        found.setdefault(row["repo_id"], {})[row["name"]] = row["count"]
    sizes = found.pop(None, {})
    return {repo_id: counts for repo_id, counts in found.items() if repo_id is not None}, sizes


def table_rows(gathered: DataFrame, name: str) -> DataFrame:
    """The rows of a table, in the columns that files can fill."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for stream in batch.column(0):
                yield from unpacked(stream.as_buffer())

    schema = ", ".join(f"`{column.name}` {column.ddl}" for column in table_columns(name))
    return gathered.select(name).mapInArrow(run, schema)
