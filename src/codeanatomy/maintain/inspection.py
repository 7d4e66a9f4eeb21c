"""A lake as maintenance finds it: the state of its tables, what should be done about it, what may not be.

    found = Look(Upkeep("lake", settings))
    [task.reason for task in found.tasks()]      # why each of them
    found.left_alone, found.unpublished          # what waits for a build; what earlier maintenance has left

Nothing is written, and no JVM is started. Tests: `tests/unit/maintain/test_maintenance.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from msgspec import MsgspecError, Struct

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.delta.read.light import light_table, location
from codeanatomy.delta.read.readable import has_only_rewrites
from codeanatomy.errors import CodeAnatomyError, TableMissing, UsageError
from codeanatomy.lake.lease import TABLE as LEASE
from codeanatomy.lake.lease import read_lease
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.choose import OPERATIONS, Operation, Task, tasks_of
from codeanatomy.maintain.maintenance_run import EVENTS, newest_versions, published
from codeanatomy.maintain.removal import SAFE_HOURS, Removal, removable_entries, removable_files
from codeanatomy.maintain.retention import Guard
from codeanatomy.maintain.table_state import Condition, condition_of

# Operations that Spark does; they make versions.
BY_SPARK: tuple[Operation, ...] = ("properties", "optimize", "zorder")
REMOVING: tuple[Operation, ...] = ("vacuum", "cleanup_log")
# Tables, or readers, that are named.
SHOWN = 3
# What a table may be in such a state that it cannot be looked at.
DAMAGE = (CodeAnatomyError, OSError, MsgspecError)

Result = Literal["planned", "done", "refused", "failed"]


class Upkeep(Struct, frozen=True):
    """What is asked for."""

    lake: str
    settings: Settings
    # Without any, all tables that are there.
    tables: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = OPERATIONS
    # How long versions and log entries are kept; none: as the policy of each table says.
    retention_hours: float | None = None
    # A retention that may take files from those at work.
    unsafe: bool = False
    # A verb of its own: done whatever the policy says of when, and refused rather than done in part.
    by_hand: bool = False
    # Of what is refused, do the rest.
    keep_needed: bool = False
    dry_run: bool = False
    wait: bool = True


class Outcome(Struct, frozen=True):
    """An operation on a table, and what became of it."""

    table_name: str
    operation: str
    reason: str
    outcome: Result
    from_version: int | None = None
    delta_version: int | None = None
    retention_hours: float | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None
    metrics: dict[str, int] = {}
    duration_ms: int = 0
    # As their folders are called; none: all.
    partitions: tuple[str, ...] = ()


class Look:
    """What was found in a lake, and what should be done about it."""

    def __init__(self, asked: Upkeep) -> None:
        self.asked = asked
        self.now = datetime.now(UTC)
        self.guard = Guard(asked.lake)
        # By table.
        self.conditions: dict[str, Condition] = {}
        # Tables that cannot be looked at.
        self.broken: list[Outcome] = []
        ordered = _ordered(asked.lake)
        for table in _asked_tables(asked):
            with self._guarded(table.name):
                found = condition_of(location(asked.lake, table.name), table, ordered.get(table.name, {}))
                if found is not None:
                    self.conditions[table.name] = found
        self._refuse_missing()
        # Published tables that may not get new versions now, and why.
        self.left_alone: dict[str, str] = {}
        # Versions that maintenance has made and not published.
        self.unpublished: dict[str, int] = {}
        # By table, for whom that is kept which is old enough to go.
        self.kept: dict[str, str] = {}
        self._compare(published(asked.lake))

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """A table that is damaged is told, and the others are looked at."""
        try:
            yield
        except DAMAGE as problem:
            why = problem.message if isinstance(problem, CodeAnatomyError) else str(problem)
            self.broken.append(Outcome(name, "look", f"it cannot be read: {why}", "failed"))

    def _refuse_missing(self) -> None:
        broken = {each.table_name for each in self.broken}
        missing = [name for name in self.asked.tables if name not in self.conditions and name not in broken]
        if missing or not (self.conditions or broken):
            raise TableMissing(
                f"{self.asked.lake} has no {' and no '.join(missing) or 'tables'}",
                "name a lake that was built, and tables of it",
            )

    def _compare(self, lake: Snapshot | None) -> None:
        """Hold what is there against what is published, and against what a dead build has left."""
        left = read_lease(self.asked.lake)
        journal = {pin.table_name for pin in left.pins} if left is not None else set()
        pins = {} if lake is None else {name: pin.version for name, pin in lake.pins.items()}
        newest = newest_versions(self.asked.lake)
        stray = {name: newest[name] for name, pin in pins.items() if newest.get(name, pin) != pin}
        own = {name for name in stray if has_only_rewrites(self.guard.place(name), pins[name], stray[name])}
        foreign = {name: version for name, version in stray.items() if name not in own}
        self.unpublished = {} if foreign or journal else {name: stray[name] for name in own}
        if foreign or journal:
            named = ", ".join(f"{name} {version}" for name, version in sorted(foreign.items())[:SHOWN])
            why = f"{len(foreign)} tables have versions that nobody has published ({named})"
            told = f"{why if foreign else 'a build has not finished'}: build again first"
            self.left_alone = {name: told for name in self.conditions if name in {*pins, *journal}}

    def table(self, name: str) -> Table:
        """A table, as the settings want it."""
        return catalog.table(name, self.asked.settings.tables)

    def tasks(self) -> Iterator[Task]:
        """What is worth doing, by the operations that were asked for."""
        for name, found in self.conditions.items():
            with self._guarded(name):
                yield from self._tasks_of(name, found)

    def _tasks_of(self, name: str, found: Condition) -> list[Task]:
        asked = self.asked
        tasks = [
            task
            for task in tasks_of(self.table(name), found, self.now, by_hand=asked.by_hand)
            if task.operation in asked.operations
            and not (task.operation in BY_SPARK and name in self.left_alone)
        ]
        for operation in REMOVING:
            if operation in asked.operations:
                removal = self.removal(name, operation)
                if removal.kept:
                    self.kept[name] = kept_text(removal)
                if removal.files or (removal.kept and asked.by_hand):
                    tasks.append(Task(name, operation, removal_text(self, name, operation, removal)))
        return tasks

    def hours(self, name: str, operation: Operation) -> float:
        """How long an operation keeps what it may remove."""
        return _hours(self.asked, name, operation)

    def removal(self, name: str, operation: Operation) -> Removal:
        """What an operation would remove."""
        find = removable_files if operation == "vacuum" else removable_entries
        return find(self.guard, name, self.hours(name, operation))


def _ordered(root: str) -> dict[str, dict[str, int]]:
    """When each partition of each table was last Z-ordered, in milliseconds since the epoch."""
    columns = ["table_name", "operation", "outcome", "event_time", "partitions"]
    try:
        rows = light_table(root, EVENTS, columns).to_pylist()
    except TableMissing:
        return {}
    times: dict[str, dict[str, int]] = {}
    for row in rows:
        if (row["operation"], row["outcome"]) == ("zorder", "done"):
            when = int(row["event_time"].timestamp() * 1000)
            of_table = times.setdefault(row["table_name"], {})
            for part in row["partitions"] or [""]:
                of_table[part] = max(when, of_table.get(part, 0))
    return times


def refuse_unsafe(asked: Upkeep) -> None:
    """A retention below a week is asked for twice."""
    if asked.retention_hours is not None and not math.isfinite(asked.retention_hours):
        raise UsageError(f"{asked.retention_hours} is no number of hours", "write one, such as 240")
    for name in (table.name for table in _asked_tables(asked)):
        hours = {operation: _hours(asked, name, operation) for operation in asked.operations}
        short = [operation for operation in REMOVING if hours.get(operation, SAFE_HOURS) < SAFE_HOURS]
        if short and not asked.unsafe:
            raise UsageError(
                f"{short[0]} of {name} would keep {hours[short[0]]:g} hours, less than {SAFE_HOURS:g}: "
                "it may take files from readers and writers that are at work",
                "keep more, or say --unsafe if nobody else uses the lake",
            )


def _asked_tables(asked: Upkeep) -> Iterator[Table]:
    """The tables that were named, or all, as the settings want them."""
    for name in asked.tables or (table.name for table in catalog.TABLES):
        table = catalog.table(name, asked.settings.tables)
        if table.name != LEASE:
            yield table
        elif asked.tables:
            raise UsageError(f"{LEASE} is kept small by whoever holds the lease", "name other tables")


def _hours(asked: Upkeep, name: str, operation: Operation) -> float:
    """How long an operation keeps what it may remove."""
    upkeep = catalog.table(name, asked.settings.tables).upkeep
    if asked.retention_hours is not None:
        return asked.retention_hours
    # The log is of no use without the files, but the files are lost without the log.
    return upkeep.vacuum_hours if operation == "vacuum" else max(upkeep.log_hours, upkeep.vacuum_hours)


def removal_text(found: Look, name: str, operation: Operation, removal: Removal) -> str:
    what = "files" if operation == "vacuum" else "files of the log"
    size = f"{len(removal.files):,} {what}, {removal.size_bytes / 2**20:,.1f} MB"
    told = f"{size}, that nobody has needed for {found.hours(name, operation):g} hours"
    return f"{told}; {kept_text(removal)}" if removal.kept else told


def kept_text(removal: Removal) -> str:
    shown = [f"{count:,} for {who}" for who, count in list(removal.kept.items())[:SHOWN]]
    more = f" and {len(removal.kept) - SHOWN:,} others" if len(removal.kept) > SHOWN else ""
    return f"{sum(removal.kept.values()):,} older ones are kept: {', '.join(shown)}{more}"
