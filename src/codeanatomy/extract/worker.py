"""A share of files into rows, whatever the files do.

A parser may crash the interpreter (deep nesting overflows its C stack), eat all memory or never end. So
the witnesses run in a child process; before every step the child notes in shared memory which file and
which witness it is at. When it dies or takes too long, that one step is silenced, with the reason, and the
chunk is done again in a new child:

    parent                      child
    ask(chunk)          ->      read, decode, ast, libcst, ...   (note: file 3, step 2)
    ask(next chunk)     <-      rows of each table, as Arrow streams
    yield to Spark              ... already at the next chunk

The rows stay packed as Arrow streams (`arrow.packed`), one per table, until a table is written.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, msgpack, structs

from codeanatomy.arrow import pack_rows
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Extractor, Problem, SkippedSteps
from codeanatomy.extract.file_rows import (
    FAILURES,
    LINES,
    SOURCES,
    Rows,
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
from codeanatomy.extract.type_checker_files import TYPES, TypesPartition, extract_types, report_chunks
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading, read_entries

# File, step, when the step began (seconds of the monotonic clock, which processes share).
NOTE = struct.Struct("iid")
# A child whose parent is gone ends by itself, after so many times the limit of a step.
ORPHAN_LIMITS = 2
POLL_SECONDS = 0.2
FORK = get_context("fork")


Task: TypeAlias = FilePartition | ScipPartition | TypesPartition
# Called before each step with the number of the file in its chunk and of the step.
EnterFile: TypeAlias = Callable[[int, int], None]


class ChunkRequest(Struct, frozen=True, array_like=True):
    """What the parent asks for."""

    task: Task
    silenced: SkippedSteps


class PackedChunk(Struct, frozen=True, tag=True):
    """The rows of a chunk: an Arrow stream by table, and their counts by repository."""

    # Id of the first file: chunks of files do not overlap, so they are in order by it.
    first: str
    streams: dict[str, bytes]
    counts: dict[str, dict[str, int]]


class Broke(Struct, frozen=True, tag=True):
    """What a child raised, which is a bug of ours."""

    said: str


class Died(Struct, frozen=True):
    """Where a child was when it ended, and how."""

    file: int
    step: int
    problem: Problem


def extract_task(task: Task, witnesses: Sequence[Extractor], options: ExtractOptions) -> Iterator[PackedChunk]:
    """The rows of a task's files, chunk by chunk; more pieces where a chunk had to be taken apart."""
    child = _Child(witnesses, options)
    try:
        ahead = _chunks(task)
        chunk = next(ahead, None)
        if chunk is not None:
            child.ask(ChunkRequest(chunk, {}))
        while chunk is not None:
            answers = _answers(child, chunk)
            chunk = next(ahead, None)
            if chunk is not None:
                child.ask(ChunkRequest(chunk, {}))
            yield from answers
    finally:
        child.stop()


def _chunks(task: Task) -> Iterator[Task]:
    if isinstance(task, FilePartition):
        return split_chunks(task)
    return document_chunks(task) if isinstance(task, ScipPartition) else report_chunks(task)


def extract_tables(witnesses: Sequence[Extractor]) -> tuple[str, ...]:
    """The tables that `extract_task` fills."""
    return (*SOURCES, LINES, *(witness.table for witness in witnesses), SCIP, TYPES, FAILURES)


def _answers(child: _Child, chunk: Task) -> list[PackedChunk]:
    """The rows of a chunk that was asked for, asked again as often as a step has to be silenced."""
    silenced: SkippedSteps = {}
    last = len(child.witnesses) + 1
    while True:
        answer = child.answer()
        if isinstance(answer, PackedChunk):
            return [answer]
        if answer.step == last and len(chunk.files) > 1:
            return [part for single in _singles(chunk) for part in _asked(child, single)]
        steps = silenced.setdefault(answer.file, {})
        failed = range(1, last) if answer.step == last else (answer.step,)
        # If that does not help, only that the file is there is kept.
        left = [step for step in failed if step not in steps] or [step for step in (0,) if step not in steps]
        if not left:
            raise RuntimeError(f"a process that examines files keeps failing: {answer.problem.message}")
        steps.update(dict.fromkeys(left, answer.problem))
        child.ask(ChunkRequest(chunk, silenced))


def _asked(child: _Child, chunk: Task) -> list[PackedChunk]:
    child.ask(ChunkRequest(chunk, {}))
    return _answers(child, chunk)


def _singles(chunk: Task) -> Iterator[Task]:
    for number, file in enumerate(chunk.files):
        rest = without_index(chunk) if number > 0 and isinstance(chunk, ScipPartition) else chunk
        yield structs.replace(rest, files=[file])


class _Note:
    """Which step of which file a child is at, in memory that parent and child share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, NOTE.size)

    def write(self, file: int, step: int) -> None:
        NOTE.pack_into(self._memory, 0, file, step, time.monotonic())

    def read(self) -> tuple[int, int, float]:
        file, step, since = NOTE.unpack_from(self._memory)
        return file, step, since


@dataclass
class _Child:
    """The process that runs the witnesses, started when it is needed."""

    witnesses: Sequence[Extractor]
    options: ExtractOptions
    note: _Note = field(default_factory=_Note)
    process: Any = None
    line: Connection | None = None

    def ask(self, request: ChunkRequest) -> None:
        if self.process is None:
            self.line, end = FORK.Pipe()
            self.note.write(0, 0)
            arguments = (end, self.line, self.note, self.witnesses, self.options)
            self.process = FORK.Process(target=_serve, args=arguments, daemon=True)
            self.process.start()
            end.close()
        # If it has died since the last chunk, the next answer tells.
        with suppress(OSError):
            self._line.send_bytes(msgpack.encode(request))

    def answer(self) -> PackedChunk | Died:
        """The rows, or how the child failed."""
        try:
            while not self._line.poll(POLL_SECONDS):
                file, step, since = self.note.read()
                if time.monotonic() - since > self.options.file_seconds:
                    limit = f"took longer than extract.file_seconds = {self.options.file_seconds:g}"
                    self.stop()
                    return Died(file, step, Problem("error", "extract", "time_limit", limit))
            said = msgpack.decode(self._line.recv_bytes(), type=PackedChunk | Broke)
        except (EOFError, OSError):
            file, step, _ = self.note.read()
            self.process.join()
            how = _ending(self.process.exitcode)
            self.stop()
            return Died(file, step, Problem("error", "extract", "crashed", how))
        if isinstance(said, PackedChunk):
            return said
        return Died(0, len(self.witnesses) + 1, Problem("error", "extract", "broken_rows", said.said))

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self._line.close()
            self.process = self.line = None

    @property
    def _line(self) -> Connection:
        if self.line is None:
            raise EOFError
        return self.line


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process that ran it died of {signal.Signals(-code).name}"
    return f"the process that ran it ended with code {code}"


def _serve(
    line: Connection,
    other_end: Connection,
    note: _Note,
    witnesses: Sequence[Extractor],
    options: ExtractOptions,
) -> None:
    """The child: answer requests until the parent hangs up."""
    # Inherited by the fork; while it is open here, the parent's end would never be seen to close.
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A crash would be told on stderr, which is the user's; the parent tells it in a row.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _limit_memory(options.max_memory_size)
    # Syntax trees have no cycles; collecting among millions of their nodes costs a third of the time. What
    # the child was born with is not looked at when it does collect, between two chunks.
    gc.disable()
    gc.freeze()

    def enter(file: int, step: int) -> None:
        note.write(file, step)
        signal.setitimer(signal.ITIMER_REAL, ORPHAN_LIMITS * options.file_seconds)

    while True:
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            request = msgpack.decode(line.recv_bytes(), type=ChunkRequest)
        except EOFError:
            os._exit(0)
        try:
            answer: PackedChunk | Broke = _packed(request, enter, witnesses, options)
        # A bug of ours costs a file, too.
        except Exception as problem:  # noqa: BLE001
            answer = Broke(f"{type(problem).__name__}: {problem}")
        line.send_bytes(msgpack.encode(answer))
        del answer
        gc.collect()


def _packed(
    request: ChunkRequest, enter: EnterFile, witnesses: Sequence[Extractor], options: ExtractOptions
) -> PackedChunk:
    task, silenced = request.task, request.silenced
    if isinstance(task, FilePartition):
        rows = list(_examined(task, silenced, enter, witnesses, options))
    elif isinstance(task, ScipPartition):
        rows = list(extract_documents(task, options, silenced, enter))
    else:
        rows = list(extract_types(task, options, silenced, enter))
    enter(0, len(witnesses) + 1)
    streams = {name: pack_rows(part) for name, part in table_batches(extract_tables(witnesses), rows).items()}
    first = rows[0]["place"].get("file_id") if rows else None
    return PackedChunk(first or "", streams, count_rows(rows))


def _examined(
    share: FilePartition,
    silenced: SkippedSteps,
    enter: EnterFile,
    witnesses: Sequence[Extractor],
    options: ExtractOptions,
) -> Iterator[Rows]:
    read = _readings(share, silenced, options, partial(enter, 0, 0))
    for file, (number, _) in enumerate(share.files):
        enter(file, 0)
        reading = next(read[number])
        repo_id = share.places[number].repo_id
        yield extract_file(repo_id, reading, witnesses, options, silenced.get(file, {}), partial(enter, file))


def _readings(
    share: FilePartition, silenced: SkippedSteps, options: ExtractOptions, touch: Callable[[], None]
) -> dict[int, Iterator[Reading]]:
    """For each place its files in the order they stand in the share; what is skipped is not opened."""
    entries: dict[int, list[tuple[Entry, bool]]] = {}
    for file, (number, entry) in enumerate(share.files):
        skipped = entry.skipped_reason is not None or 0 in silenced.get(file, {})
        entries.setdefault(number, []).append((entry, skipped))
    return {number: _read(share.places[number], wanted, options, touch) for number, wanted in entries.items()}


def _read(
    place: RepositoryRoot, entries: Sequence[tuple[Entry, bool]], options: ExtractOptions, touch: Callable[[], None]
) -> Iterator[Reading]:
    wanted = [entry for entry, skipped in entries if not skipped]
    found = read_entries(place.kind, place.root, wanted, options)
    if place.kind == "tar":
        # A tar has no index: its members come in one pass, in its own order.
        by_path = {}
        for reading in found:
            # The limit is one of a file, not of the archive.
            touch()
            by_path[reading.entry.path] = reading
        found = (by_path[entry.path] for entry in wanted)
    for entry, skipped in entries:
        yield Reading(entry, None, None, None) if skipped else next(found)


def _limit_memory(size: int) -> None:
    """Allow the process this much more memory than it has, where the system tells how much that is."""
    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + size if hard == resource.RLIM_INFINITY else min(used + size, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
