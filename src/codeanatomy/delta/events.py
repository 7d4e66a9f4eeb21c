"""Declare the events of the storage layer: one frozen struct per scan, commit, gate check and stats decision.

Events go to a recorder, a plain callable; a run persists them (`lake.observations`).

>>> events: list[Event] = []
>>> recorder: Recorder = events.append
>>> recorder(GateChecked(table="cpg_nodes", version=3, passed=True))
>>> events[0].table
'cpg_nodes'

Tests: `tests/unit/lake/test_observations.py`, `tests/spark/test_commit.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from codeanatomy.delta.log.snapshot_info import SnapshotInfo


class Event(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Base class of the events; each concerns one table."""

    table: str


class Scanned(Event, frozen=True, kw_only=True):
    """A pinned read: the version, and the expressions of the contract's columns."""

    version: int
    projection: tuple[str, ...]
    # Data files the scan was restricted to; None means all files of the version.
    files: tuple[str, ...] | None = None
    # Data files of the version, and those left after pruning; None if the log was not consulted.
    total_files: int | None = None
    candidate_files: int | None = None
    # Conditions given to the scan.
    pushed_filters: tuple[str, ...] = ()
    filter_columns: tuple[str, ...] = ()
    join_columns: tuple[str, ...] = ()
    # Columns read.
    projected_columns: tuple[str, ...] = ()
    # Number of identical scans that this event stands for.
    count: int = 1


class Committed(Event, frozen=True, kw_only=True):
    """A commit, with the metrics that Delta reports."""

    operation: str
    # Version of the table that holds the commit.
    version: int
    # False: there was nothing to write, or the transaction had been committed before.
    committed: bool = True
    # True: the same transaction had been committed before.
    repeated: bool = False
    # True: this commit created the table.
    created: bool = False
    run_id: str
    # Together with the run id, identifies the transaction.
    sequence: int = 0
    # User metadata of the commit in Delta's history.
    metadata: str | None = None
    rows: int = 0
    rows_deleted: int = 0
    files: int = 0
    files_removed: int = 0
    # Bytes of the added files.
    size_bytes: int = 0
    attempts: int = 1
    # Names of the conflicts that caused retries, in order.
    conflicts: tuple[str, ...] = ()
    seconds: float = 0.0
    # Metrics as reported by the engine.
    metrics: dict[str, int] = {}
    dropped_columns: tuple[str, ...] = ()


class CommitRefused(Event, frozen=True, kw_only=True):
    """A commit that was refused before any row became visible."""

    operation: str
    run_id: str
    sequence: int = 0
    code: str
    message: str
    # The rules that rows violate, and samples of those rows.
    violated: dict[str, str] = {}
    samples: tuple[str, ...] = ()
    # Names of the conflicts that the commit lost to, if any.
    conflicts: tuple[str, ...] = ()
    seconds: float = 0.0


class GateChecked(Event, frozen=True, kw_only=True):
    """The check of a table's protocol against its gate."""

    version: int
    passed: bool
    problems: tuple[str, ...] = ()
    # Protocol, properties and schema of that version.
    snapshot: SnapshotInfo | None = None


class TableAltered(Event, frozen=True, kw_only=True):
    """A change of a table's properties, features or columns to match the catalogue."""

    # Versions before and after: each version in between is one commit.
    from_version: int
    version: int
    # Properties that were set; an empty value means removed.
    properties: dict[str, str] = {}
    added_columns: tuple[str, ...] = ()


class FeedRead(Event, frozen=True, kw_only=True):
    """A read of the change feed over a closed range of versions."""

    first_version: int
    last_version: int


Recorder = Callable[[Event], None]


def discard(event: Event) -> None:
    """Ignore an event: the recorder that keeps nothing."""
