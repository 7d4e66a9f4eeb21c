"""Run the passes of a build on Spark: any lake, any number of repositories, any cluster.

    executor = SparkExecutor(run)
    views = executor.map_tasks("extract", tasks, first_pass, total=2_823)      # one job, one task per task

Pieces are rows of frames (`pipeline.pieces`), kept in Spark's cache on disk until the run ends. A pass is one
job: its small results (counts, data files) come back with it. Groups meet by an exchange of pieces, which are
compressed Arrow streams; Spark never sees a row of a table, except where only Spark can write it.

Tests: `tests/spark/test_executors.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json
from pyspark import Accumulator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.read.predicate import And, InList, Or, Predicate, Term
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.file_view import INNER, TableReads, key_columns
from codeanatomy.pipeline.chunks import rows_by_chunk
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.caching import cache_frame
from codeanatomy.pipeline.executors.executor import (
    GroupBy,
    GroupWork,
    StoredRows,
    TableWrite,
    TaskWork,
    finished_files,
    groups_of,
    progress_text,
)
from codeanatomy.pipeline.executors.sorted_tables import complete_rows
from codeanatomy.pipeline.executors.spark_files import PACKED_BYTES_PER_FILE_BYTE, Files, write_tables
from codeanatomy.pipeline.impact import IMPACT
from codeanatomy.pipeline.pieces import (
    COUNTS,
    DATA_FILE,
    DDL,
    KEYS,
    MB,
    OUTCOME,
    PIECE_BYTES,
    SAMPLE,
    Piece,
    Pieces,
    cut,
    in_batches,
    joined,
    to_batch,
)
from codeanatomy.pipeline.stored_rows import stored_predicate
from codeanatomy.progress import run_with_progress
from codeanatomy.spark.jvm import ENGINE_ERRORS
from codeanatomy.spark.metrics import operator_metrics
from codeanatomy.spark.plan_columns import plan_columns
from codeanatomy.spark.plans import plan_texts
from codeanatomy.spark.session import clone_session

# Bytes of pieces by name, of a task.
SIZES = "sizes"
# Pieces that come back to the driver with the job that makes them.
SMALL = (COUNTS, DATA_FILE, OUTCOME, IMPACT, KEYS, SAMPLE, SIZES)
# Batches that Spark passes to Python.
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * MB),
}
# Bytes of sources whose rows are so few that compiling code for them takes longer than it spares: in a build
# of `requests` (0.2 MB) it was a sixth of the processor time of the JVM.
FEW_BYTES = 4 * MB
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Chunks are spread by hash: with more tasks, the last ones are shorter.
TASKS_PER_CORE = 8
FILES_PER_TASK = 256


@dataclass
class SparkHeld:
    """A frame of pieces, and those of its results that are small."""

    frame: DataFrame
    small: list[Piece] = field(default_factory=list)

    @property
    def sizes(self) -> Counter[str]:
        """Bytes of the pieces by name."""
        sizes: Counter[str] = Counter()
        for piece in self.small:
            if piece.name == SIZES:
                sizes.update(json.decode(piece.data, type=dict[str, int]))
        return sizes


class SparkExecutor:
    """Spark as the engine of a build."""

    publishes = True

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cloned: SparkSession | None = None
        # Frames that are kept.
        self._frames = ExitStack()

    @property
    def _session(self) -> SparkSession:
        """A session with the settings of the passes."""
        if self._cloned is None:
            few = {} if self._run.source_bytes > FEW_BYTES else INTERPRETED
            self._cloned = clone_session(self._run.spark, {**SETTINGS, **few})
        return self._cloned

    def map_tasks(self, step: str, tasks: Sequence[bytes], work: TaskWork, total: int) -> SparkHeld:
        """Run `work` on each task, as one job with a Spark task for each."""
        spark = self._session
        # Each task decodes its own part only; the listing of a repository may be long.
        encoded = spark.sparkContext.broadcast(list(tasks))
        self._frames.callback(encoded.destroy)
        progress = _Counters(spark)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            numbers = (number for batch in batches for number in batch.column(0).to_pylist())
            pieces = (piece for number in numbers for piece in work(encoded.value[number]))
            yield from _rows(progress.watch(pieces))

        frame = spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(run, DDL)
        return self._computed(step, work, frame, progress, total)

    def map_groups(
        self, step: str, held: Sequence[SparkHeld], names: Collection[str], by: GroupBy, work: GroupWork
    ) -> SparkHeld:
        """Run `work` on groups of pieces of some names, as one job with an exchange."""
        spark = self._session
        progress = _Counters(spark)
        together = _union([each.frame for each in held]).where(F.col("name").isin(*sorted(names)))
        if by == "repo_id":
            number, tasks = self._repository_numbers()
            exchanged = together.withColumn("number", number).repartitionById(tasks, "number").drop("number")
        else:
            exchanged = together.repartition(self._tasks(step), "repo_id", "chunk")
        ordered = exchanged.sortWithinPartitions("repo_id", "chunk", "name", "key", "part")

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _rows(progress.watch(work(groups_of(in_batches(batches), by))))

        total = self._run.files_of(step)
        frame = ordered.mapInArrow(run, DDL)
        return self._computed(step, work, frame, progress, total)

    def _repository_numbers(self) -> tuple[Column, int]:
        """Return the task of each repository as a column, and the number of tasks."""
        cores = self._run.spark.sparkContext.defaultParallelism
        numbers = largest_first(self._run.repository_bytes, 8 * cores)
        pairs = [F.lit(each) for pair in numbers.items() for each in pair]
        number = F.coalesce(F.element_at(F.create_map(*pairs), F.col("repo_id")), F.lit(0))
        return number, max(numbers.values(), default=0) + 1

    def _tasks(self, step: str) -> int:
        """Return the number of tasks for chunks of files."""
        if self._run.settings.extract.partitions is not None:
            return self._run.settings.extract.partitions
        cores = self._run.spark.sparkContext.defaultParallelism
        files = self._run.files_of(step)
        chunks = sum(map(self._run.chunk_count, self._run.plan.step(step).busy))
        return min(max(1, chunks), max(TASKS_PER_CORE * cores, math.ceil(files / FILES_PER_TASK)))

    def _computed(
        self, step: str, work: object, frame: DataFrame, progress: _Counters, total: int
    ) -> SparkHeld:
        """Compute a frame and keep it; report progress."""
        run = self._run
        is_later = step in run.plans

        def report(*, last: bool = False) -> None:
            # A later frame may be of groups of no file, such as rows that are merged.
            if progress.files.value or not is_later:
                run.progress.update(step, progress.status(total), last=last)

        held = SparkHeld(self._frames.enter_context(cache_frame(run, step, work, frame)))
        small = held.frame.where(F.col("name").isin(*SMALL))
        collect = inheritable_thread_target(run.spark)(small.toArrow)
        rows = run_with_progress(collect, report)
        report(last=True)
        held.small = list(in_batches(rows.to_batches()))
        if step not in run.plans:
            # While the frame is cached, its operators have their figures. Later frames of a step are small.
            run.plans[step], run.operators[step] = plan_texts(held.frame), operator_metrics(held.frame)
        for name, used in plan_columns(held.frame).items():
            if name in run.pins:
                run.observed.refine(name, run.pins[name], used.filters, used.joins)
        return held

    def stored(self, rows: Sequence[StoredRows]) -> SparkHeld:
        """Read rows of pinned tables as pieces; lazily, by the pass that needs them."""
        run, spark = self._run, self._session
        together: dict[tuple[str, str, bool], list[StoredRows]] = {}
        for each in rows:
            if each.table in run.pins and each.owners != ():
                together.setdefault((each.table, each.name, each.is_unowned), []).append(each)
        frames = [self._stored(spark, members) for members in together.values()]
        return SparkHeld(_union(frames) if frames else spark.createDataFrame([], DDL))

    def _stored(self, spark: SparkSession, wanted: Sequence[StoredRows]) -> DataFrame:
        first, run = wanted[0], self._run
        store = replace(run.spark_store, spark=spark)
        any_of: tuple[Term, ...] = tuple(stored_predicate(each).term for each in wanted)
        table = catalog.table(first.table)
        repositories = InList.of(table.column("repo_id"), [each.repo_id for each in wanted])
        where = Predicate(table.name, And((repositories, Or(any_of) if len(any_of) > 1 else any_of[0])))
        stored = scan(store, first.table, run.pins[first.table], where=where).rows
        read = {*key_columns(table.name), *first.reads}
        columns = [_column(name, first.reads.get(name, ())) for name in table.column_names if name in read]
        counts = {each.repo_id: run.chunk_count(each.repo_id) for each in wanted}

        def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for from_spark in batches:
                batch = _as_declared(table, from_spark, first.reads)
                repositories = batch.column("repo_id")
                for repo_id in repositories.unique().to_pylist():
                    own = batch.filter(pc.equal(repositories, repo_id))
                    for chunk, members in rows_by_chunk(first.table, own, counts[repo_id]):
                        data = pack_rows(members)
                        yield to_batch(cut(repo_id, chunk, first.name, data, uuid4().hex))

        return stored.select(*columns).mapInArrow(pack, DDL)

    def collect(self, held: SparkHeld, *names: str) -> list[Piece]:
        """Return the pieces of these names."""
        if set(names) <= set(SMALL):
            return [piece for piece in held.small if piece.name in names]
        return list(in_batches(held.frame.where(F.col("name").isin(*sorted(names))).toArrow().to_batches()))

    def write_files(
        self, held: Sequence[SparkHeld], writes: Sequence[TableWrite]
    ) -> dict[str, list[DataFile]]:
        """Write the rows of tables in their order to data files."""
        sizes = reduce(Counter.__add__, (each.sizes for each in held), Counter[str]())
        frame = _union([each.frame for each in held])
        cores = self._run.spark.sparkContext.defaultParallelism

        def inherit(job: Callable[[], Files]) -> Callable[[], Files]:
            # For each thread anew: the properties of a thread are one object.
            return cast("Callable[[], Files]", inheritable_thread_target(self._run.spark)(job))

        samples: dict[str, list[pa.RecordBatch]] = {}
        for piece in (piece for each in held for piece in each.small if piece.name == SAMPLE):
            samples.setdefault(piece.key, []).extend(unpack_rows(piece.data))
        tables = {name: pa.Table.from_batches(batches) for name, batches in samples.items()}
        return write_tables(frame, writes, sizes, tables, cores, inherit)

    def commit_rows(
        self, held: Sequence[SparkHeld], write: TableWrite, owners: Sequence[str], by: str, commit: Commit
    ) -> Committed:
        """Replace the rows of owners, or append without owners, with Spark's own writer."""
        sizes = sum((each.sizes[write.name] for each in held), 0)
        pieces = _union([each.frame for each in held]).where(F.col("name") == write.name)

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # The parts of a stream follow each other, as its task has made them.
            streams = (data for _, data in joined(in_batches(batches)))
            yield from complete_rows(write, (rows for data in streams for rows in unpack_rows(data)))

        ddl = ", ".join(f"`{column.name}` {column.ddl}" for column in write.table.columns)
        frame = pieces.mapInArrow(rows, ddl)
        store, size = self._run.spark_store, sizes // PACKED_BYTES_PER_FILE_BYTE
        if not owners:
            return append(store, write.table.name, frame, commit, file_bytes=size)
        return replace_by_owner(store, write.table.name, frame, owners, commit, by=by, file_bytes=size)

    def release(self) -> None:
        """Free all frames; if the JVM is gone, there are none."""
        with suppress(*ENGINE_ERRORS, OSError):
            self._frames.close()


class _Counters:
    """Count finished files and failures of a job; updated when a task ends."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self.files: Accumulator[int] = context.accumulator(0)
        self.failures: Accumulator[int] = context.accumulator(0)

    def watch(self, pieces: Pieces) -> Pieces:
        """Pass the pieces of a task on, and count, on an executor."""
        sizes: Counter[str] = Counter()
        for piece in pieces:
            sizes[piece.name] += len(piece.data)
            if piece.name == COUNTS:
                files, failures = finished_files(piece)
                self.files += files
                self.failures += failures
            yield piece
        yield Piece("", "", "", SIZES, 0, 1, json.encode(sizes))

    def status(self, total: int) -> str:
        """Describe the progress."""
        return progress_text(self.files.value, self.failures.value, total)


def _rows(pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Yield pieces as rows of a frame, a few megabytes at a time."""
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece.data)
        if size >= PIECE_BYTES:
            yield to_batch(batch)
            batch, size = [], 0
    if batch:
        yield to_batch(batch)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


def largest_first(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the task of each repository: the largest has the first, so it begins first.

    >>> largest_first({"requests": 2, "django": 173, "flask": 4}, most=2)
    {'django': 0, 'flask': 1, 'requests': 0}
    """
    ordered = sorted(sizes, key=lambda repo_id: (-sizes[repo_id], repo_id))
    return {repo_id: place % most for place, repo_id in enumerate(ordered)}


def _column(name: str, fields: Sequence[str]) -> Column:
    """Select fields of a list of structs, so that others are not read from the files."""
    if not fields:
        return F.col(name)
    parts = [
        _inner(f"{name}.{each}", INNER[each]).alias(each)
        if each in INNER
        else F.col(f"{name}.{each}").alias(each)
        for each in fields
    ]
    return F.arrays_zip(*parts).alias(name)


def _as_declared(table: Table, rows: pa.RecordBatch, reads: TableReads) -> pa.RecordBatch:
    """Give whole columns the types of the catalogue: those of Spark name list items otherwise."""
    schema = arrow_schema(table)
    fields = [
        rows.schema.field(name) if reads.get(name) else schema.field(name) for name in rows.schema.names
    ]
    arrays = [values.cast(field.type) for values, field in zip(rows.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _inner(path: str, fields: Sequence[str]) -> Column:
    def read(one: Column) -> Column:
        return F.struct(*(one[each].alias(each) for each in fields))

    return F.transform(path, lambda each: F.transform(each, read))
