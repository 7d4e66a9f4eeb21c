"""Run the passes of a build on processes of this machine.

    executor = LocalExecutor(run, worker, processes=2)
    views = executor.map_tasks("extract", tasks, file_stage, total=3)

Pieces stay in the worker process (`local_process`), which forks to use several cores; the process of the
command reads pinned tables with DuckDB and commits. Rows of a build are in memory. It is for builds with
`--engine local` and for the forecasts of `codeanatomy plan`. Tests: `tests/unit/pipeline/test_executors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import count

from codeanatomy.arrow import unpack_rows
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.executor import (
    Group,
    GroupBy,
    GroupWork,
    StoredRows,
    TableWrite,
    TaskWork,
    finished_files,
    groups_of,
    piece_order,
    progress_text,
)
from codeanatomy.pipeline.executors.local_process import Worker, count_finished
from codeanatomy.pipeline.executors.processes import map_in_forks
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.tasks.pieces import COUNTS, Piece, Pieces
from codeanatomy.pipeline.tasks.stored_rows import ReadStored, read_tasks
from codeanatomy.progress import run_with_progress

LocalHeld = int
# In the worker process: the pieces that are held.
HELD: dict[LocalHeld, list[Piece]] = {}


class LocalExecutor:
    """Local processes that run the passes of a build."""

    # A fork cannot use an object store.
    publishes = False

    def __init__(self, run: Run, worker: Worker, processes: int) -> None:
        self._run = run
        self._worker = worker
        self._processes = processes
        self._numbers = count()
        # By step: files of its calls so far, and those that they have finished, with failures.
        self._totals: dict[str, int] = {}
        self._finished: dict[str, tuple[int, int]] = {}

    def map_tasks(self, step: str, tasks: Sequence[bytes], work: TaskWork, total: int) -> LocalHeld:
        """Run `work` on each task."""
        held = next(self._numbers)
        self._totals[step] = self._totals.get(step, 0) + total
        call = partial(self._worker.call, hold_tasks, held, tasks, work, self._processes)
        self._report(step, call)
        return held

    def map_groups(
        self, step: str, held: Sequence[LocalHeld], names: Collection[str], by: GroupBy, work: GroupWork
    ) -> LocalHeld:
        """Run `work` on groups of pieces of some names."""
        made = next(self._numbers)
        self._totals.setdefault(step, self._run.files_of(step))
        call = partial(self._worker.call, hold_groups, made, held, names, by, work, self._processes)
        self._report(step, call)
        return made

    def _report(self, step: str, work: Callable[[], None]) -> None:
        """Do work in the worker process, and report the finished files of all calls of the step."""
        is_later = step in self._finished
        earlier, before = self._finished.get(step, (0, 0)), self._worker.finished

        def report(*, last: bool = False) -> None:
            now = self._worker.finished
            if is_later and now == before:
                # It works on groups of no file, such as rows that are merged.
                return
            files, failures = (each + new - old for each, new, old in zip(earlier, now, before, strict=True))
            self._finished[step] = files, failures
            self._run.progress.update(step, progress_text(files, failures, self._totals[step]), last=last)

        run_with_progress(work, report)
        report(last=True)

    def stored(self, rows: Sequence[StoredRows]) -> LocalHeld:
        """Read rows of pinned tables as pieces."""
        held = next(self._numbers)
        read = ReadStored()
        pieces = [piece for task in read_tasks(self._run, rows) for piece in read(task)]
        self._worker.call(hold, held, pieces)
        return held

    def results(self, held: LocalHeld, *names: str) -> list[Piece]:
        """Return the pieces of these names, which are small."""
        return self._worker.call(pieces_named, held, names)

    def read(self, held: LocalHeld, name: str) -> list[Piece]:
        """Read the pieces of a name."""
        return self._worker.call(pieces_named, held, (name,))

    def write_files(
        self, held: Sequence[LocalHeld], writes: Sequence[TableWrite]
    ) -> dict[str, list[DataFile]]:
        """Write the rows of tables in their order to data files."""
        files = self._worker.call(write_tables, held, writes, self._processes)
        return {write.table.name: made for write, made in zip(writes, files, strict=True)}

    def cancel(self) -> None:
        """Stop the worker process."""
        self._worker.stop()

    def release(self) -> None:
        """Free all pieces, if the process still lives."""
        if self._worker.is_running:
            self._worker.call(drop_all)


def hold(held: LocalHeld, pieces: list[Piece]) -> None:
    """Keep pieces, in the worker process."""
    HELD[held] = pieces


def drop_all() -> None:
    """Forget all pieces."""
    HELD.clear()


def pieces_named(held: LocalHeld, names: Collection[str]) -> list[Piece]:
    """Return the pieces of some names."""
    return [piece for piece in HELD[held] if piece.name in names]


def hold_tasks(held: LocalHeld, tasks: Sequence[bytes], work: TaskWork, processes: int) -> None:
    """Run tasks, in forks if there are several, and keep their pieces."""
    hold(held, _mapped(lambda number: work(tasks[number]), len(tasks), processes))


def hold_groups(
    made: LocalHeld,
    held: Sequence[LocalHeld],
    names: Collection[str],
    by: GroupBy,
    work: GroupWork,
    processes: int,
) -> None:
    """Run work on groups of pieces, in forks if there are several, and keep the pieces."""
    pieces = sorted((piece for each in held for piece in pieces_named(each, names)), key=piece_order)
    groups = [Group(repo_id, chunk, list(members)) for repo_id, chunk, members in groups_of(pieces, by)]
    shares = _shares(groups, processes) if by == "chunk" else [[group] for group in _largest_first(groups)]
    hold(made, _mapped(lambda number: work(iter(shares[number])), len(shares), processes))


def _mapped(work: Callable[[int], Pieces], number: int, processes: int) -> list[Piece]:
    def counted(each: int) -> list[Piece]:
        made = []
        for piece in work(each):
            made.append(piece)
            if piece.name == COUNTS:
                count_finished(*finished_files(piece))
        return made

    return [piece for made in map_in_forks(counted, number, processes, fewest=1) for piece in made]


def _size(group: Group) -> int:
    return sum(len(piece.data) for piece in group.pieces)


def _largest_first(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (-_size(group), group.repo_id))


def _shares(groups: Sequence[Group], number: int) -> list[list[Group]]:
    """Divide groups, in their order, into shares of about equal size."""
    shares: list[list[Group]] = [[] for _ in range(number)]
    total, done = sum(map(_size, groups)) or 1, 0
    for group in groups:
        shares[min(done * number // total, number - 1)].append(group)
        done += _size(group)
    return [share for share in shares if share]


def write_tables(
    held: Sequence[LocalHeld], writes: Sequence[TableWrite], processes: int
) -> list[list[DataFile]]:
    """Write the rows of tables, in forks if there are several, the largest first."""
    pieces: dict[str, list[Piece]] = {}
    for each in held:
        for piece in HELD[each]:
            pieces.setdefault(piece.name, []).append(piece)

    def write(number: int) -> tuple[int, list[DataFile]]:
        folder, table, name, is_copy = writes[order[number]]
        batches = (rows for piece in pieces.get(name, ()) for rows in unpack_rows(piece.data))
        return order[number], write_in_order(folder, table, batches, is_copy=is_copy)

    sizes = [sum(len(piece.data) for piece in pieces.get(write.name, ())) for write in writes]
    order = sorted(range(len(writes)), key=lambda number: -sizes[number])
    made = dict(map_in_forks(write, len(writes), processes if sum(sizes) > FEW_BYTES else 1))
    return [made[number] for number in range(len(writes))]


# Bytes of pieces that are written by one process: a fork takes longer.
FEW_BYTES = 512 * 1024
