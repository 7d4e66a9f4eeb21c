"""Define what a build needs of its engine: map over tasks and groups of pieces, read and write tables.

    views  = executor.map_tasks("extract", tasks, file_stage, total=19)     # one call per task
    solved = executor.map_groups("relate", [views], names, "repo_id", solve)     # one group per repository
    graph  = executor.map_groups("graph", [views, solved], names, "chunk", graph_stage)
    executor.results(graph, COUNTS)                                         # small results, on the driver

The functions that are mapped are the same for all executors, and so are their rows (`pipeline.tasks`).
`pipeline.executors.spark_executor` is what builds use; `pipeline.executors.local_executor` serves machines
without Java, and most tests. Tests: `tests/unit/pipeline/test_executors.py`, `tests/spark/test_executors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, json

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.file_view import TableReads
from codeanatomy.pipeline.tasks.pieces import COUNTS, Counts, Piece, Pieces

# Pieces that an executor holds: a frame, or a list in another process.
Held: TypeAlias = Any
# What pieces are grouped by: files that are worked on together, or a whole repository.
GroupBy: TypeAlias = Literal["chunk", "repo_id"]
# Counters that grow by one for each file, in one pass or another.
FILE_COUNTERS = ("repo_files_v1", "relate_programs_v1", "graph_files")


class Group(NamedTuple):
    """Pieces of a chunk of files, or of a repository."""

    repo_id: str
    chunk: str
    pieces: Iterable[Piece]


TaskWork: TypeAlias = Callable[[bytes], Pieces]
GroupWork: TypeAlias = Callable[[Iterator[Group]], Pieces]


class StoredRows(Struct, frozen=True):
    """Rows of a table at the version that the run has pinned, or at another one."""

    table: str
    repo_id: str
    # Files whose rows are read; None: all files, and rows of no file.
    owners: tuple[str, ...] | None
    reads: TableReads
    # Name of the pieces.
    name: str
    # Only rows that belong to no file.
    is_unowned: bool = False
    version: int | None = None


class TableWrite(NamedTuple):
    """A table whose rows are pieces that have to be put in its order."""

    folder: NewFiles
    table: Table
    # Name of the pieces.
    name: str
    # Whether the rows are those of another table in another order.
    is_copy: bool = False


class Executor(Protocol):
    """An engine that runs the passes of a build."""

    # Whether it publishes the data files that it writes; else a commit does.
    publishes: bool

    def map_tasks(self, step: str, tasks: Sequence[bytes], work: TaskWork, total: int) -> Held:
        """Run `work` on each task; `total` files are reported as the goal."""

    def map_groups(
        self, step: str, held: Sequence[Held], names: Collection[str], by: GroupBy, work: GroupWork
    ) -> Held:
        """Run `work` on the groups of pieces of some names; each group is in one call, which may get more."""

    def stored(self, rows: Sequence[StoredRows]) -> Held:
        """Read rows of pinned tables as pieces, in chunks of files."""

    def results(self, held: Held, *names: str) -> list[Piece]:
        """Return the pieces of these names, which are small (`pieces.SMALL`)."""

    def read(self, held: Held, name: str) -> list[Piece]:
        """Read the pieces of a name, for an error message: it may take another job."""

    def write_files(self, held: Sequence[Held], writes: Sequence[TableWrite]) -> dict[str, list[DataFile]]:
        """Write the rows of tables in their order to data files."""

    def cancel(self) -> None:
        """Stop what is running, from another thread."""

    def release(self) -> None:
        """Free all that is held."""


def finished_files(piece: Piece) -> tuple[int, int]:
    """Return how many files a piece reports as finished, and their failures."""
    counts = list(json.decode(piece.data, type=Counts).values()) if piece.name == COUNTS else []
    files = sum(max(each.get(name, 0) for name in FILE_COUNTERS) for each in counts)
    return files, sum(each.get(FAILURES, 0) for each in counts)


def progress_text(files: int, failures: int, total: int) -> str:
    """Describe the progress of a step.

    >>> progress_text(1_204, 31, 1_790)
    '1,204/1,790 files, 31 failures'
    """
    done = f"{min(files, total):,}/{total:,} files"
    return f"{done}, {failures:,} failures" if failures else done


def groups_of(pieces: Iterable[Piece], by: GroupBy) -> Iterator[Group]:
    """Yield the groups of pieces that are ordered by repository and chunk."""
    if by == "repo_id":
        for repo_id, members in groupby(pieces, key=lambda piece: piece.repo_id):
            yield Group(repo_id, "", members)
    else:
        for (repo_id, chunk), members in groupby(pieces, key=lambda piece: (piece.repo_id, piece.chunk)):
            yield Group(repo_id, chunk, members)


def piece_order(piece: Piece) -> tuple[str, str, str, str, int]:
    """Return the order of pieces within a call."""
    return piece.repo_id, piece.chunk, piece.name, piece.key, piece.part
