"""Run the extractors on a partition of files in a child process that may crash or hang.

A parser may crash the interpreter (deep nesting overflows its C stack), use up all memory or never end. So
the extractors run in a child process; before every step the child writes the number of the file and of the
extractor to shared memory. If it dies or takes too long, that one step is skipped, with the reason, and the
chunk is repeated in a new child:

    parent                      child
    send(chunk)         ->      read, decode, ast, libcst, ...   (progress: file 3, step 2)
    send(next chunk)    <-      rows of each table, as Arrow streams in a file
    write or pass on            ... already at the next chunk

A caller may have the child do more with the extracted files (`ChunkWork`), whose parts are more steps of each
file. Rows are passed in files that both processes map, see `extract.shared_rows`.

Tests: `tests/unit/extract/test_worker.py`.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import resource
import signal
import struct
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import Struct, msgpack, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.costs import Costs
from codeanatomy.extract.evidence import Extractor, Problem, SkippedSteps
from codeanatomy.extract.file_rows import (
    FAILURES,
    FILE,
    LINES,
    SOURCES,
    FileRows,
    count_rows,
    extract_file,
    table_batches,
)
from codeanatomy.extract.partitions import FilePartition, RepositoryRoot, split_chunks
from codeanatomy.extract.scip_index import (
    SCIP,
    ScipPartition,
    document_chunks,
    extract_documents,
    without_index,
)
from codeanatomy.extract.shared_rows import Place, map_streams, shared_file, write_rows
from codeanatomy.extract.tools.tool_tasks import CheckerTask, IndexTask, tool_chunks
from codeanatomy.extract.type_checker_files import TYPES, TypesPartition, extract_types, report_chunks
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading, read_entries

# File, step, start of the step (seconds of the monotonic clock, which processes share).
PROGRESS = struct.Struct("iid")
# A child without a parent ends by itself, after this many times the time limit of a step.
ORPHAN_LIMITS = 2
POLL_SECONDS = 0.2
FORK = get_context("fork")


# Sent to the child.
Chunk: TypeAlias = FilePartition | ScipPartition | TypesPartition
Task: TypeAlias = Chunk | CheckerTask | IndexTask
# Names of what is measured: running a tool, reading and decoding a file, and packing its rows.
STEP = "extract"
TOOLS: Mapping[type, str] = {CheckerTask: "pyrefly", IndexTask: "scip-python"}
READ, PACK = "read", "pack"
# Repository, group of files, key, name, part, number of parts, content.
PackedPiece: TypeAlias = tuple[str, str, str, str, int, int, bytes]
# Called before each step with the number of the file in its chunk and of the step.
EnterFile: TypeAlias = Callable[[int, int], None]


class ChunkRequest(Struct, frozen=True, array_like=True):
    """A chunk to extract, sent to the child."""

    task: Chunk
    skipped_steps: SkippedSteps


class ChunkResult(NamedTuple):
    """What further work on a chunk has made: rows by table, and named bytes for the caller."""

    tables: Mapping[str, pa.RecordBatch]
    # Names and numbers by which the caller knows the bytes behind them.
    pieces: Sequence[PackedPiece]
    # Rows by table, and costs.
    counts: Mapping[str, int] = {}


# Why parts of further work have killed a process, by number of the file, then of the part.
FailedParts: TypeAlias = Mapping[int, Mapping[int, Problem]]
# Further work on the files of a chunk in the child. Arguments: the files, their rows by table, the parts that
# have killed a process here, and a function to be called before each part of each file.
ChunkWork: TypeAlias = Callable[
    [Sequence[FileRows], Mapping[str, pa.RecordBatch], FailedParts, EnterFile], ChunkResult
]
# Further work has so many parts at most, each of which is a step of a file.
WORK_PARTS = 2


def no_more_work(*_: object) -> ChunkResult:
    """Do nothing with extracted files."""
    return ChunkResult({}, ())


class PackedChunk(Struct, frozen=True):
    """The rows of a chunk: an Arrow stream by table, and their counts by repository."""

    # A chunk has files of one repository, and chunks do not overlap, so these two order them.
    repo_id: str
    first_file_id: str
    streams: Mapping[str, pa.Buffer]
    counts: dict[str, dict[str, int]]
    pieces: list[PackedPiece] = []


class ChunkAnswer(Struct, frozen=True, tag=True):
    """A packed chunk as the child sends it, before the file with the streams."""

    repo_id: str
    first_file_id: str
    places: dict[str, Place]
    counts: dict[str, dict[str, int]]
    pieces: list[PackedPiece]


class WorkerError(Struct, frozen=True, tag=True):
    """An exception of the child, which is a bug of ours."""

    message: str


class StepFailure(Struct, frozen=True):
    """The file and step at which a child died or took too long, and the reason."""

    file: int
    step: int
    problem: Problem


def extract_task(
    task: Task, extractors: Sequence[Extractor], options: ExtractOptions, work: ChunkWork = no_more_work
) -> Iterator[PackedChunk]:
    """Yield the rows of a task's files, chunk by chunk; more pieces for a chunk that had to be split."""
    child = _ChildProcess(extractors, options, work)
    chunks = _chunks(task, options)
    try:
        began = time.perf_counter()
        chunk = next(chunks, None)
        # A tool runs before its first chunk.
        tool = TOOLS.get(type(task))
        tool_seconds = time.perf_counter() - began if tool else 0.0
        if chunk is not None:
            child.send(ChunkRequest(chunk, {}))
        while chunk is not None:
            packed = _receive_chunk(child, chunk)
            if tool and tool_seconds:
                packed[0] = _with_cost(packed[0], tool, tool_seconds)
                tool_seconds = 0.0
            chunk = next(chunks, None)
            if chunk is not None:
                child.send(ChunkRequest(chunk, {}))
            yield from packed
    finally:
        child.stop()
        # Removes the folder of a tool.
        chunks.close()


def _with_cost(packed: PackedChunk, tool: str, seconds: float) -> PackedChunk:
    """Add what a tool has cost to the counts of its first chunk."""
    costs = Costs()
    costs.add(STEP, tool, seconds)
    counts = {**packed.counts.get(packed.repo_id, {}), **costs.counters()}
    return structs.replace(packed, counts={**packed.counts, packed.repo_id: counts})


def _chunks(task: Task, options: ExtractOptions) -> Generator[Chunk, None, None]:
    if isinstance(task, FilePartition):
        yield from split_chunks(task)
    elif isinstance(task, ScipPartition):
        yield from document_chunks(task)
    elif isinstance(task, TypesPartition):
        yield from report_chunks(task)
    else:
        yield from tool_chunks(task, options)


def extract_tables(extractors: Sequence[Extractor]) -> tuple[str, ...]:
    """Return the tables that `extract_task` fills."""
    return (*SOURCES, LINES, *(extractor.table for extractor in extractors), SCIP, TYPES, FAILURES)


def _receive_chunk(child: _ChildProcess, chunk: Chunk) -> list[PackedChunk]:
    """Wait for the rows of a chunk; send it again, with the failed step skipped, until there are rows."""
    skipped_steps: SkippedSteps = {}
    work_step = len(child.extractors) + 1
    pack_step = work_step + WORK_PARTS
    while True:
        answer = child.receive()
        if isinstance(answer, PackedChunk):
            return [answer]
        if answer.step == pack_step and len(chunk.files) > 1:
            return [part for single in _single_files(chunk) for part in _extract_chunk(child, single)]
        skipped = skipped_steps.setdefault(answer.file, {})
        failed = range(1, work_step) if answer.step == pack_step else (answer.step,)
        # If that does not help, skip reading: then only the file's existence is recorded.
        added = [step for step in failed if step not in skipped] or [
            step for step in (0,) if step not in skipped
        ]
        if not added:
            raise RuntimeError(f"a process that examines files keeps failing: {answer.problem.message}")
        skipped.update(dict.fromkeys(added, answer.problem))
        child.send(ChunkRequest(chunk, skipped_steps))


def _extract_chunk(child: _ChildProcess, chunk: Chunk) -> list[PackedChunk]:
    child.send(ChunkRequest(chunk, {}))
    return _receive_chunk(child, chunk)


def _single_files(chunk: Chunk) -> Iterator[Chunk]:
    """Split a chunk into chunks of one file."""
    for number, file in enumerate(chunk.files):
        rest = without_index(chunk) if number > 0 and isinstance(chunk, ScipPartition) else chunk
        yield structs.replace(rest, files=[file])


class _SharedProgress:
    """The step of the file that a child is at, in memory shared with the parent."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PROGRESS.size)

    def write(self, file: int, step: int) -> None:
        PROGRESS.pack_into(self._memory, 0, file, step, time.monotonic())

    def read(self) -> tuple[int, int, float]:
        file, step, since = PROGRESS.unpack_from(self._memory)
        # `pack_into` clears the memory before it writes: without a time, the child is just writing it.
        return file, step, since or time.monotonic()


@dataclass
class _ChildProcess:
    """The process that runs the extractors, started with the first request."""

    extractors: Sequence[Extractor]
    options: ExtractOptions
    work: ChunkWork
    progress: _SharedProgress = field(default_factory=_SharedProgress)
    process: Any = None
    connection: Connection | None = None

    def send(self, request: ChunkRequest) -> None:
        if self.process is None:
            self.connection, child_end = FORK.Pipe()
            self.progress.write(0, 0)
            arguments = (
                child_end,
                self.connection,
                self.progress,
                self.extractors,
                self.options,
                self.work,
            )
            self.process = FORK.Process(target=_serve, args=arguments, daemon=True)
            self.process.start()
            child_end.close()
        # If it has died since the last chunk, `receive` reports it.
        with suppress(OSError):
            self._open_connection.send_bytes(msgpack.encode(request))

    def receive(self) -> PackedChunk | StepFailure:
        """Wait for the rows, or for the failure of the child."""
        try:
            while not self._open_connection.poll(POLL_SECONDS):
                file, step, since = self.progress.read()
                if time.monotonic() - since > self.options.file_seconds:
                    limit = f"took longer than extract.file_seconds = {self.options.file_seconds:g}"
                    self.stop()
                    return StepFailure(file, step, Problem("error", "extract", "time_limit", limit))
            answer = msgpack.decode(self._open_connection.recv_bytes(), type=ChunkAnswer | WorkerError)
            if isinstance(answer, ChunkAnswer):
                streams = map_streams(reduction.recv_handle(self._open_connection), answer.places)
                return PackedChunk(
                    answer.repo_id, answer.first_file_id, streams, answer.counts, answer.pieces
                )
        except (EOFError, OSError):
            file, step, _ = self.progress.read()
            self.process.join()
            cause = _describe_exit(self.process.exitcode)
            self.stop()
            return StepFailure(file, step, Problem("error", "extract", "crashed", cause))
        problem = Problem("error", "extract", "broken_rows", answer.message)
        return StepFailure(0, len(self.extractors) + 1 + WORK_PARTS, problem)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self._open_connection.close()
            self.process = self.connection = None

    @property
    def _open_connection(self) -> Connection:
        if self.connection is None:
            raise EOFError
        return self.connection


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process that ran it died of {signal.Signals(-code).name}"
    return f"the process that ran it ended with code {code}"


def _serve(
    connection: Connection,
    parent_end: Connection,
    progress: _SharedProgress,
    extractors: Sequence[Extractor],
    options: ExtractOptions,
    work: ChunkWork,
) -> None:
    """Run in the child: answer requests until the parent closes the connection."""
    # Inherited by the fork; while it is open here, closing it in the parent would not be noticed.
    parent_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A crash would be printed on the user's stderr; the parent records it in a row.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _limit_memory(options.max_memory_size)
    # Syntax trees have no cycles; collecting among millions of their nodes costs a third of the time. Objects
    # from before the fork are left out of the collections between two chunks.
    gc.disable()
    gc.freeze()

    def enter(file: int, step: int) -> None:
        progress.write(file, step)
        signal.setitimer(signal.ITIMER_REAL, ORPHAN_LIMITS * options.file_seconds)

    while True:
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            request = msgpack.decode(connection.recv_bytes(), type=ChunkRequest)
        except EOFError:
            os._exit(0)
        with shared_file() as file:
            try:
                answer: ChunkAnswer | WorkerError = _pack_chunk(
                    request, enter, extractors, options, work, file
                )
            # A bug of ours costs a file, too.
            except Exception as error:  # noqa: BLE001
                answer = WorkerError(f"{type(error).__name__}: {error}")
            connection.send_bytes(msgpack.encode(answer))
            if isinstance(answer, ChunkAnswer):
                reduction.send_handle(connection, file.fileno(), os.getppid())
        del answer
        gc.collect()


def _pack_chunk(
    request: ChunkRequest,
    enter: EnterFile,
    extractors: Sequence[Extractor],
    options: ExtractOptions,
    work: ChunkWork,
    file: IO[bytes],
) -> ChunkAnswer:
    """Work on a chunk, and write its rows to a file."""
    task, skipped_steps, costs = request.task, request.skipped_steps, Costs()
    if isinstance(task, FilePartition):
        clock = _StepClock(enter, (READ, *(extractor.table for extractor in extractors)), costs)
        files = list(_extract_files(task, skipped_steps, clock, extractors, options))
        clock.stop()
    elif isinstance(task, ScipPartition):
        with costs.timed(STEP, SCIP):
            files = list(extract_documents(task, options, skipped_steps, enter))
    else:
        with costs.timed(STEP, TYPES):
            files = list(extract_types(task, options, skipped_steps, enter))
    work_step = len(extractors) + 1
    pack_step = work_step + WORK_PARTS
    enter(0, pack_step)
    with costs.timed(STEP, PACK):
        batches = table_batches(extract_tables(extractors), files)
    failed = {
        number: {step - work_step: problem for step, problem in steps.items() if step >= work_step}
        for number, steps in skipped_steps.items()
    }
    made = work(files, batches, failed, lambda number, part: enter(number, work_step + part))
    enter(0, pack_step)
    rows = {name: batch for name, batch in {**batches, **made.tables}.items() if batch.num_rows}
    with costs.timed(STEP, PACK):
        places = write_rows(file, rows)
    first = files[0][FILE] if files else {}
    repo_id = first.get("repo_id") or ""
    counts = count_rows(files)
    own = counts.setdefault(repo_id, {}) if files else {}
    own.update({name: batch.num_rows for name, batch in made.tables.items()})
    own.update({**costs.counters(), **made.counts})
    return ChunkAnswer(repo_id, first.get("file_id") or "", places, counts, list(made.pieces))


class _StepClock:
    """Report the steps of files as they begin, and measure each until the next one begins."""

    def __init__(self, enter: EnterFile, names: Sequence[str], costs: Costs) -> None:
        self._enter = enter
        self._names = names
        self._costs = costs
        self._name, self._began = READ, time.perf_counter()

    def __call__(self, file: int, step: int) -> None:
        self._enter(file, step)
        self._switch(self._names[step])

    def stop(self) -> None:
        """End the last step."""
        self._switch(READ)

    def _switch(self, name: str) -> None:
        now = time.perf_counter()
        self._costs.add(STEP, self._name, now - self._began)
        self._name, self._began = name, now


def _extract_files(
    partition: FilePartition,
    skipped_steps: SkippedSteps,
    enter: EnterFile,
    extractors: Sequence[Extractor],
    options: ExtractOptions,
) -> Iterator[FileRows]:
    readings = _read_files(partition, skipped_steps, options, partial(enter, 0, 0))
    for file, (number, _) in enumerate(partition.files):
        enter(file, 0)
        reading = next(readings[number])
        repo_id, skipped = partition.roots[number].repo_id, skipped_steps.get(file, {})
        yield extract_file(repo_id, reading, extractors, options, skipped, partial(enter, file))


def _read_files(
    partition: FilePartition, skipped_steps: SkippedSteps, options: ExtractOptions, touch: Callable[[], None]
) -> dict[int, Iterator[Reading]]:
    """Read the files of each root in the order of the partition; skipped files are not opened."""
    entries: dict[int, list[tuple[Entry, bool]]] = {}
    for file, (number, entry) in enumerate(partition.files):
        skipped = entry.skipped_reason is not None or 0 in skipped_steps.get(file, {})
        entries.setdefault(number, []).append((entry, skipped))
    return {
        number: _read_root(partition.roots[number], of_root, options, touch)
        for number, of_root in entries.items()
    }


def _read_root(
    root: RepositoryRoot,
    entries: Sequence[tuple[Entry, bool]],
    options: ExtractOptions,
    touch: Callable[[], None],
) -> Iterator[Reading]:
    wanted = [entry for entry, skipped in entries if not skipped]
    readings = read_entries(root.kind, root.root, wanted, options)
    if root.kind == "tar":
        # A tar has no index: its members are read in one pass, in the order of the archive.
        by_path = {}
        for reading in readings:
            # The time limit is for a file, not for the archive.
            touch()
            by_path[reading.entry.path] = reading
        readings = (by_path[entry.path] for entry in wanted)
    for entry, skipped in entries:
        yield Reading(entry, None, None, None) if skipped else next(readings)


def _limit_memory(size: int) -> None:
    """Limit the memory of the process to its present use and `size`, if the system reports its use."""
    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + size if hard == resource.RLIM_INFINITY else min(used + size, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
