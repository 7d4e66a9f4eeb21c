"""Run the extract step on Spark: spread files over tasks, read each once, commit table by table.

One job runs the extractors on the executors and keeps their rows, packed by table (`pipeline.packed_rows`).
Then every table is committed. Only the listing and counts per repository pass through the driver.

    gathered = gather(spark, tasks, EXTRACTORS, options, counters)   # lazy: a row per chunk of files
    work_through(run, "extract", gathered, status)                  # runs the extractors, fills the cache
    commit_tables(run, gathered, worked)

Tests: `tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from msgspec import msgpack
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.events import Committed
from codeanatomy.extract.evidence import Extractor
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.extract.worker import PackedChunk, Task, extract_tables, extract_task
from codeanatomy.logs import Log
from codeanatomy.pipeline.caching import cache_frame
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.inputs import step_session
from codeanatomy.pipeline.packed_rows import (
    StepResult,
    append_packed,
    commit_all,
    packed_ddl,
    packed_row,
    replacements,
    work_through,
)
from codeanatomy.pipeline.scip_indexes import scip_tasks
from codeanatomy.pipeline.type_checker import type_tasks
from codeanatomy.plan.changes import FILES, read_file_states
from codeanatomy.plan.steps import EXTRACT
from codeanatomy.sources.digest import FileStates, states_digest


def extract_stage(run: Run) -> None:
    """Read the files of all repositories and commit the evidence of the extractors."""
    options = run.settings.extract
    cores = run.spark.sparkContext.defaultParallelism
    listings = run.working(EXTRACT)
    sources = [RepositoryListing(repo_id, listing) for repo_id, listing in listings.items()]
    with scip_tasks(run, listings) as indexes, type_tasks(run, listings) as reports:
        _extract(run, [*indexes, *reports, *partition_files(sources, options.partitions, cores)])


def _extract(run: Run, tasks: Sequence[Task]) -> None:
    total = sum(len(listing.entries) for listing in run.working(EXTRACT).values())
    counters = Counters(run.spark)
    gathered = gather(step_session(run, EXTRACT), tasks, EXTRACTORS, run.settings.extract, counters)

    def status() -> str:
        return f"{counters.files.value:,}/{total:,} files, {counters.failures.value:,} failures"

    with cache_frame(run, EXTRACT, gathered) as kept:
        worked = work_through(run, EXTRACT, kept, status)
        with run.timed("extract_commit"):
            commit_tables(run, kept, worked)
    for repo_id in run.working(EXTRACT):
        warn_if_source_changed(run, repo_id, read_file_states(run.store.root, repo_id, run.pins[FILES]))


def warn_if_source_changed(run: Run, repo_id: str, read: FileStates) -> None:
    """Warn if the source that was read is not the one that was planned with."""
    digest = states_digest(read)
    if digest != run.listed.digests[repo_id]:
        warning = f"{repo_id} changed while it was read"
        run.progress.update(EXTRACT, warning, last=True)
        Log(run_id=run.run_id, step=EXTRACT).warning(warning)
        run.source_was_read(repo_id, digest)


def commit_tables(run: Run, gathered: DataFrame, worked: StepResult) -> None:
    """Replace the repositories' rows in every table; failures are added to those of other runs."""

    def failures() -> Committed:
        return append_packed(run, gathered, FAILURES, worked, run.commit(EXTRACT), run_id=run.run_id)

    names = [name for name in extract_tables(EXTRACTORS) if name != FAILURES]
    commit_all(run, EXTRACT, {**replacements(run, gathered, names, worked), FAILURES: failures})


class Counters:
    """Count finished files and failures; updated when a task ends."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self.files, self.failures = context.accumulator(0), context.accumulator(0)

    def add(self, packed: PackedChunk) -> None:
        """Count a chunk, on an executor."""
        for counts in packed.counts.values():
            self.files += counts.get("repo_files_v1", 0)
            self.failures += counts[FAILURES]


def gather(
    spark: SparkSession,
    todo: Sequence[Task],
    extractors: Sequence[Extractor],
    options: ExtractOptions,
    counters: Counters,
) -> DataFrame:
    """Return a frame with a row per chunk of files and a column per table; one Spark task per task."""
    # Each task decodes its own part only; the listing of a repository may be long.
    encoded = spark.sparkContext.broadcast([msgpack.encode(task) for task in todo])
    tables = extract_tables(extractors)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = msgpack.decode(encoded.value[number], type=Task)
                for packed in extract_task(task, extractors, options):
                    counters.add(packed)
                    streams = {name: packed.streams[name] for name in tables}
                    yield packed_row(packed.repo_id, packed.first_file_id, streams, packed.counts)

    tasks = spark.range(0, len(todo), 1, len(todo))
    return tasks.mapInArrow(run, packed_ddl(tables))
