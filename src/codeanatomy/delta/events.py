"""What the storage layer tells: one frozen event per scan, commit, gate check and stats decision.

Events are handed to a recorder, a plain callable; persisting them is the business of a run.

>>> seen: list[Event] = []
>>> recorder: Recorder = seen.append
>>> recorder(GateChecked(table="cpg_nodes", version=3, passed=True))
>>> seen[0].table
'cpg_nodes'
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from codeanatomy.delta.log.snapshot_info import SnapshotInfo


class Event(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Base of the events: all of them are about one table."""

    table: str


class Scanned(Event, frozen=True, kw_only=True):
    """A pinned read: which version, and the expressions that make the contract's columns."""

    version: int
    projection: tuple[str, ...]
    # Data files the scan was restricted to; none means all files of the version.
    files: tuple[str, ...] | None = None
    # Data files of the version, and those left after pruning; none where nobody has looked.
    total_files: int | None = None
    candidate_files: int | None = None
    # Conditions given to the scan.
    pushed_filters: tuple[str, ...] = ()
    filter_columns: tuple[str, ...] = ()
    join_columns: tuple[str, ...] = ()
    # Columns asked for.
    projected_columns: tuple[str, ...] = ()
    # So many of the same.
    count: int = 1


class Committed(Event, frozen=True, kw_only=True):
    """A commit, with what Delta itself reports about it."""

    operation: str
    # Version of the table that holds the commit.
    version: int
    # False: nothing had to be written, or the transaction was there already.
    committed: bool = True
    # True: the same transaction had been committed before.
    repeated: bool = False
    # True: the table was born with this commit.
    created: bool = False
    run_id: str
    # Within the run: with it the name of the transaction.
    sequence: int = 0
    # What Delta's history has of it.
    metadata: str | None = None
    rows: int = 0
    rows_deleted: int = 0
    files: int = 0
    files_removed: int = 0
    # Bytes of the added files.
    size_bytes: int = 0
    attempts: int = 1
    # Names of the conflicts that made us try again, in order.
    conflicts: tuple[str, ...] = ()
    seconds: float = 0.0
    # As the engine has reported them.
    metrics: dict[str, int] = {}
    dropped_columns: tuple[str, ...] = ()


class CommitRefused(Event, frozen=True, kw_only=True):
    """A commit that failed before anything became visible."""

    operation: str
    run_id: str
    sequence: int = 0
    code: str
    message: str
    # The rules that rows break, and some of those rows.
    violated: dict[str, str] = {}
    samples: tuple[str, ...] = ()
    # What it had lost against, if that was it.
    conflicts: tuple[str, ...] = ()
    seconds: float = 0.0


class GateChecked(Event, frozen=True, kw_only=True):
    """A table's protocol held against its gate."""

    version: int
    passed: bool
    problems: tuple[str, ...] = ()
    # What the log says of that version.
    snapshot: SnapshotInfo | None = None


class StatsDecided(Event, frozen=True, kw_only=True):
    """Which columns get statistics, and why."""

    stats_policy: str
    stats_columns: tuple[str, ...]
    lineage_columns: tuple[str, ...] = ()
    # Why each column has statistics.
    reasons: dict[str, str] = {}
    # Columns that were wanted and left out: over the limit, of a wrong type, or absent.
    dropped_columns: tuple[str, ...] = ()


class TableAltered(Event, frozen=True, kw_only=True):
    """A table whose properties, features or columns were brought to what the catalogue says."""

    # What it was altered at, and what it came to: a commit for each version between them.
    from_version: int
    version: int
    # What was set; a property that was removed is empty.
    properties: dict[str, str] = {}
    added_columns: tuple[str, ...] = ()


class FeedRead(Event, frozen=True, kw_only=True):
    """A change feed read over a closed range of versions."""

    first_version: int
    last_version: int


Recorder = Callable[[Event], None]


def discard(event: Event) -> None:
    """The recorder that keeps nothing."""
