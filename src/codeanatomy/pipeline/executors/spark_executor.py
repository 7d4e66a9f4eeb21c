"""Run the passes of a build on Spark: any lake, any number of repositories, any kind of session.

    executor = SparkExecutor(run, session)
    views = executor.map_tasks("extract", tasks, file_stage, total=2_823)      # one job, a Spark task each

A pass is a frame of pieces (`pipeline.tasks.pieces`), kept in Spark's cache on disk until the run ends, and
computed by one job that brings its small results back with it: counts, data files. Groups meet by an exchange
of pieces, which are compressed Arrow streams; Spark never sees a row of a table. Only the public DataFrame
API is used, so a classic session, a notebook's and one of Spark Connect run the same code:

    tasks            rows of a frame: [0, <task>] [1, <task>] ...     one per Spark task
    stored rows      tasks, too: each reads some data files of a pinned table where it runs
    groups           union of frames -> repartition by repository or chunk -> sort -> mapInArrow
    tables           `spark_tables`: all tables of a pass in one job

What needs the JVM is only recorded: plans and figures of operators (`spark.plans`).
Tests: `tests/spark/test_executors.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from msgspec import Struct, json, msgpack
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from codeanatomy.arrow import unpack_rows
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.logs import Log
from codeanatomy.pipeline.context import FrameRecord, Run
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
from codeanatomy.pipeline.executors.spark_tables import files_by_table, plan_tables, written_files
from codeanatomy.pipeline.tasks.pieces import (
    COUNTS,
    DDL,
    PIECE_BYTES,
    SAMPLE,
    SIZES,
    SMALL,
    Piece,
    Pieces,
    in_batches,
    to_batch,
)
from codeanatomy.pipeline.tasks.stored_rows import FileReads, ReadStored, read_tasks
from codeanatomy.progress import run_with_progress
from codeanatomy.spark.jvm import ENGINE_ERRORS
from codeanatomy.spark.metrics import Described, describe_frame
from codeanatomy.spark.task_counter import TaskCounter

# Chunks are spread by hash: with more tasks, the last ones are shorter.
TASKS_PER_CORE = 8
FILES_PER_TASK = 256
# Bytes of sources that are worth a task beyond one for each core.
TASK_BYTES = 128 * 1024
# Bytes of pieces of a table for each key that is remembered, to divide the table into files.
KEY_STEP = 256 * 1024
TASK_SCHEMA = pa.schema({"number": pa.int32(), "task": pa.binary()})


class TaskSizes(Struct):
    """Bytes of a task's pieces by name, and some of their keys."""

    bytes: dict[str, int] = {}
    keys: dict[str, list[tuple[str, str]]] = {}


@dataclass
class SparkHeld:
    """A frame of pieces, and those of its results that are small."""

    frame: DataFrame
    small: list[Piece] = field(default_factory=list)
    # Tasks that read stored rows, where the frame does that.
    reads: int = 0

    @property
    def sizes(self) -> list[TaskSizes]:
        """Sizes of the pieces of each task."""
        return [json.decode(piece.data, type=TaskSizes) for piece in self.small if piece.name == SIZES]


class SparkExecutor:
    """Spark as the engine of a build."""

    publishes = True

    def __init__(self, run: Run, session: SparkSession) -> None:
        self._run = run
        self._session = session
        # Frames that are kept.
        self._frames = ExitStack()
        # Plans are read while the next pass computes. Step, name, plans and seconds of each frame.
        self._recorder = ThreadPoolExecutor(1)
        self._described: list[tuple[str, str, Future[Described], float]] = []

    def map_tasks(self, step: str, tasks: Sequence[bytes], work: TaskWork, total: int) -> SparkHeld:
        """Run `work` on each task, as one job with a Spark task for each."""
        step_bytes = KEY_STEP

        def run(tasks: Iterator[bytes]) -> Pieces:
            return _add_sizes((piece for task in tasks for piece in work(task)), step_bytes)

        return self._compute(step, work, self._map(tasks, run), total)

    def map_groups(
        self, step: str, held: Sequence[SparkHeld], names: Collection[str], by: GroupBy, work: GroupWork
    ) -> SparkHeld:
        """Run `work` on groups of pieces of some names, as one job with an exchange."""
        together = _union([each.frame for each in held]).where(F.col("name").isin(*sorted(names)))
        tasks = self._repository_tasks if by == "repo_id" else self._chunk_tasks(step)
        if tasks == 1 and sum(each.reads for each in held) <= 1:
            # Frames in the cache stay as they were computed; stored rows would be read by this one task.
            exchanged = together.coalesce(1)
        elif by == "repo_id":
            exchanged = together.repartitionById(tasks, self._repository_number())
        else:
            exchanged = together.repartition(tasks, "repo_id", "chunk")
        ordered = exchanged.sortWithinPartitions("repo_id", "chunk", "name", "key", "part")

        step_bytes = KEY_STEP

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _to_batches(_add_sizes(work(groups_of(in_batches(batches), by)), step_bytes))

        frame = ordered.mapInArrow(run, DDL)
        return self._compute(step, work, frame, self._run.files_of(step))

    def stored(self, rows: Sequence[StoredRows]) -> SparkHeld:
        """Read rows of pinned tables as pieces; lazily, by the pass that needs them."""
        tasks = read_tasks(self._run, rows)
        if not tasks:
            return SparkHeld(self._session.createDataFrame(to_batch([]).to_pylist(), DDL))
        work = ReadStored(self._run.store_policy)

        def run(tasks: Iterator[bytes]) -> Pieces:
            return (piece for task in tasks for piece in work(msgpack.decode(task, type=list[FileReads])))

        return SparkHeld(self._map([msgpack.encode(task) for task in tasks], run), reads=len(tasks))

    def results(self, held: SparkHeld, *names: str) -> list[Piece]:
        """Return the pieces of these names, which came back with the job that made them."""
        if not {*names} <= {*SMALL}:
            raise ValueError(f"{names} are not small")
        return [piece for piece in held.small if piece.name in names]

    def read(self, held: SparkHeld, name: str) -> list[Piece]:
        """Read the pieces of a name, by a job."""
        return list(in_batches(held.frame.where(F.col("name") == name).toArrow().to_batches()))

    def write_files(
        self, held: Sequence[SparkHeld], writes: Sequence[TableWrite]
    ) -> dict[str, list[DataFile]]:
        """Write the rows of tables in their order to data files, as one job."""
        sizes: Counter[str] = Counter()
        keys: dict[str, list[tuple[str, str]]] = {}
        samples: dict[str, list[pa.RecordBatch]] = {}
        for each in held:
            for task in each.sizes:
                sizes.update(task.bytes)
                for name, own in task.keys.items():
                    keys.setdefault(name, []).extend(own)
            for piece in self.results(each, SAMPLE):
                samples.setdefault(piece.key, []).extend(unpack_rows(piece.data))
        tables = {name: pa.Table.from_batches(batches) for name, batches in samples.items()}
        plan = plan_tables(writes, sizes, keys, tables, self._run.cores)
        files: dict[str, list[DataFile]] = {write.table.name: [] for write in writes}
        if plan.tables:
            names = sorted({each.write.name for each in plan.tables})
            pieces = _union([each.frame for each in held]).where(F.col("name").isin(*names))
            step = self._run.store.table(plan.tables[0].write.table.name).stage
            files |= files_by_table(self._run_job(step, "tables", written_files(pieces, plan)))
        return files

    def cancel(self) -> None:
        """Stop the jobs that run; if the JVM is gone, there are none."""
        with suppress(*ENGINE_ERRORS, OSError):
            self._session.interruptAll()

    def release(self) -> None:
        """Record the plans of all frames, and free them; if the JVM is gone, there are none."""
        for step, name, described, seconds in self._described:
            self._run.frames.append(FrameRecord(step, name, *described.result(), seconds))
        self._described.clear()
        with suppress(*ENGINE_ERRORS, OSError):
            self._frames.close()

    def _map(self, tasks: Sequence[bytes], work: Callable[[Iterator[bytes]], Pieces]) -> DataFrame:
        """Return the frame of the pieces that `work` makes of each task, with a partition for each."""
        rows = pa.table({"number": range(len(tasks)), "task": list(tasks)}, schema=TASK_SCHEMA)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _to_batches(work(task for batch in batches for task in batch.column(1).to_pylist()))

        numbered = self._session.createDataFrame(rows).repartitionById(max(1, len(tasks)), "number")
        return numbered.mapInArrow(run, DDL)

    @property
    def _repository_tasks(self) -> int:
        """The number of tasks for repositories."""
        return max(1, min(len(self._run.repository_bytes), TASKS_PER_CORE * self._run.cores))

    def _repository_number(self) -> Column:
        """Return the task of each repository as a column."""
        numbers = largest_first(self._run.repository_bytes, self._repository_tasks)
        pairs = [F.lit(each) for pair in numbers.items() for each in pair]
        return F.coalesce(F.element_at(F.create_map(*pairs), F.col("repo_id")), F.lit(0))

    def _chunk_tasks(self, step: str) -> int:
        """Return the number of tasks for chunks of files."""
        run = self._run
        if run.settings.extract.partitions is not None:
            return run.settings.extract.partitions
        busy = run.plan.step(step).busy
        chunks, size = sum(map(run.chunk_count, busy)), sum(run.repository_bytes[each] for each in busy)
        few = max(run.cores, math.ceil(size / TASK_BYTES))
        most = max(TASKS_PER_CORE * run.cores, math.ceil(run.files_of(step) / FILES_PER_TASK))
        return max(1, min(chunks, few, most))

    def _compute(self, step: str, work: object, frame: DataFrame, total: int) -> SparkHeld:
        """Compute a frame and keep it on disk: in memory, packed rows would crowd out what computes."""
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self._frames.callback(kept.unpersist)
        held = SparkHeld(kept)
        name = getattr(work, "frame_name", type(work).__name__)
        small = self._run_job(step, name, kept.where(F.col("name").isin(*SMALL)))
        held.small = list(in_batches(small.to_batches()))
        finished = [finished_files(piece) for piece in self.results(held, COUNTS)]
        files, failures = sum(each for each, _ in finished), sum(each for _, each in finished)
        # A later frame may be of groups of no file, such as rows that are merged.
        if files:
            self._run.progress.update(step, progress_text(files, failures, total), last=True)
        return held

    def _run_job(self, step: str, name: str, frame: DataFrame) -> pa.Table:
        """Collect the few rows of a frame by one job; report progress, and record its plans and figures."""
        run, began = self._run, time.monotonic()
        counter = TaskCounter(self._session, f"{run.run_id}/{step}")

        def report() -> None:
            done, known = counter.counts()
            if known:
                run.progress.update(step, f"{done:,}/{known:,} tasks of {name}")

        def collect() -> pa.Table:
            with counter:
                return frame.toArrow()

        rows = run_with_progress(collect, report)
        described = self._recorder.submit(_describe, frame)
        self._described.append((step, name, described, time.monotonic() - began))
        return rows


def _describe(frame: DataFrame) -> Described:
    """Describe a frame; nothing that goes wrong there makes a build fail."""
    try:
        return describe_frame(frame)
    except Exception as problem:  # noqa: BLE001
        Log().warning(f"the plans of a frame are not recorded: {type(problem).__name__}: {problem}")
        return None, ()


def _add_sizes(pieces: Pieces, step_bytes: int) -> Pieces:
    """Pass the pieces of a task on, and then their sizes and a key per so many bytes, on an executor."""
    sizes: Counter[str] = Counter()
    since: Counter[str] = Counter()
    keys: dict[str, list[tuple[str, str]]] = {}
    for piece in pieces:
        sizes[piece.name] += len(piece.data)
        since[piece.name] += len(piece.data)
        if since[piece.name] >= step_bytes:
            keys.setdefault(piece.name, []).append((piece.repo_id, piece.key))
            since[piece.name] = 0
        yield piece
    yield Piece("", "", "", SIZES, 0, 1, json.encode(TaskSizes(sizes, keys)))


def _to_batches(pieces: Pieces) -> Iterator[pa.RecordBatch]:
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
