"""Inspect a lake for maintenance: the state of its tables, the operations they need, what must wait.

    inspection = LakeInspection(MaintenanceRequest("lake", settings))
    [task.reason for task in inspection.tasks()]      # why each operation is needed
    inspection.left_alone, inspection.unpublished     # what waits for a build; unpublished versions

Writes nothing and starts no JVM. Tests: `tests/unit/maintain/test_maintenance.py`.
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
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.read.readable import has_only_rewrites
from codeanatomy.errors import CodeAnatomyError, TableMissing, UsageError
from codeanatomy.lake.lease import TABLE as LEASE
from codeanatomy.lake.lease import read_lease
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.choose import OPERATIONS, Operation, Task, choose_tasks
from codeanatomy.maintain.maintenance_run import EVENTS_TABLE, newest_versions, published_snapshot
from codeanatomy.maintain.removal import SAFE_HOURS, Removal, removable_entries, removable_files
from codeanatomy.maintain.retention import RetentionGuard
from codeanatomy.maintain.table_state import TableState, inspect_table

# Operations that need Spark; they make new versions.
SPARK_OPERATIONS: tuple[Operation, ...] = ("properties", "optimize", "zorder")
DELETING_OPERATIONS: tuple[Operation, ...] = ("vacuum", "cleanup_log")
# Tables, or readers, that a message lists.
MAX_LISTED = 3
# Errors of reading a damaged table.
READ_ERRORS = (CodeAnatomyError, OSError, MsgspecError)

OutcomeStatus = Literal["planned", "done", "refused", "failed"]


class MaintenanceRequest(Struct, frozen=True):
    """A request of maintenance: the lake, the tables, the operations and how they are done."""

    lake: str
    settings: Settings
    # Empty: all tables of the lake.
    tables: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = OPERATIONS
    # How long versions and log entries are kept; None: by the policy of each table.
    retention_hours: float | None = None
    # Allow a retention so short that it may delete files that running processes read.
    unsafe: bool = False
    # Requested as a single command: done even if the policy does not require it yet, and refused as a whole
    # if a part is refused.
    by_hand: bool = False
    # Delete the rest where some files are still needed.
    keep_needed: bool = False
    dry_run: bool = False
    wait: bool = True


class Outcome(Struct, frozen=True):
    """An operation on a table and its result."""

    table_name: str
    operation: str
    reason: str
    outcome: OutcomeStatus
    from_version: int | None = None
    delta_version: int | None = None
    retention_hours: float | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None
    metrics: dict[str, int] = {}
    duration_ms: int = 0
    # Folder names of the partitions; empty: all.
    partitions: tuple[str, ...] = ()


class LakeInspection:
    """The state of a lake's tables and the operations they need."""

    def __init__(self, request: MaintenanceRequest) -> None:
        self.request = request
        self.now = datetime.now(UTC)
        self.guard = RetentionGuard(request.lake)
        self.states: dict[str, TableState] = {}
        # Tables that cannot be read.
        self.unreadable: list[Outcome] = []
        ordered = _last_z_orders(request.lake)
        for table in _requested_tables(request):
            with self._collect_damage(table.name):
                folder = location(request.lake, table.name)
                state = inspect_table(folder, table, ordered.get(table.name, {}))
                if state is not None:
                    self.states[table.name] = state
        self._refuse_missing()
        # Published tables that must not get new versions now, and why.
        self.left_alone: dict[str, str] = {}
        # Versions that earlier maintenance made and did not publish.
        self.unpublished: dict[str, int] = {}
        # By table: the readers of files that are old enough to be deleted.
        self.kept: dict[str, str] = {}
        self._compare_with_published(published_snapshot(request.lake))

    @contextmanager
    def _collect_damage(self, name: str) -> Iterator[None]:
        """Report a damaged table as a failed outcome, and go on with the others."""
        try:
            yield
        except READ_ERRORS as error:
            why = error.message if isinstance(error, CodeAnatomyError) else str(error)
            self.unreadable.append(Outcome(name, "look", f"it cannot be read: {why}", "failed"))

    def _refuse_missing(self) -> None:
        unreadable = {each.table_name for each in self.unreadable}
        known = {*self.states, *unreadable}
        missing = [name for name in self.request.tables if name not in known]
        if missing or not known:
            raise TableMissing(
                f"{self.request.lake} has no {' and no '.join(missing) or 'tables'}",
                "give a lake that was built, and tables that it has",
            )

    def _compare_with_published(self, lake: Snapshot | None) -> None:
        """Find versions that are not published: of earlier maintenance, or of a build that died."""
        left = read_lease(self.request.lake)
        journal = {pin.table_name for pin in left.pins} if left is not None else set()
        pins = {} if lake is None else {name: pin.version for name, pin in lake.pins.items()}
        newest = newest_versions(self.request.lake)
        ahead = {name: newest[name] for name, pin in pins.items() if newest.get(name, pin) != pin}
        own = {
            name
            for name, version in ahead.items()
            if has_only_rewrites(self.guard.folder(name), pins[name], version)
        }
        foreign = {name: version for name, version in ahead.items() if name not in own}
        self.unpublished = {} if foreign or journal else {name: ahead[name] for name in own}
        if foreign or journal:
            names = ", ".join(f"{name} {version}" for name, version in sorted(foreign.items())[:MAX_LISTED])
            why = f"{len(foreign)} tables have versions that no run has published ({names})"
            reason = f"{why if foreign else 'a build has not finished'}: build again first"
            self.left_alone = {name: reason for name in self.states if name in {*pins, *journal}}

    def table(self, name: str) -> Table:
        """Return a table of the catalogue with the policies of the settings."""
        return catalog.table(name, self.request.settings.tables)

    def tasks(self) -> Iterator[Task]:
        """Yield the requested operations that are worth doing."""
        for name, state in self.states.items():
            with self._collect_damage(name):
                yield from self._table_tasks(name, state)

    def _table_tasks(self, name: str, state: TableState) -> list[Task]:
        request = self.request
        tasks = [
            task
            for task in choose_tasks(self.table(name), state, self.now, by_hand=request.by_hand)
            if task.operation in request.operations
            and not (task.operation in SPARK_OPERATIONS and name in self.left_alone)
        ]
        for operation in DELETING_OPERATIONS:
            if operation in request.operations:
                removal = self.removal(name, operation)
                if removal.kept:
                    self.kept[name] = kept_text(removal)
                if removal.files or (removal.kept and request.by_hand):
                    tasks.append(Task(name, operation, removal_text(self, name, operation, removal)))
        return tasks

    def hours(self, name: str, operation: Operation) -> float:
        """Return the retention of an operation in hours."""
        return _retention_hours(self.request, name, operation)

    def removal(self, name: str, operation: Operation) -> Removal:
        """Find what an operation would delete."""
        find = removable_files if operation == "vacuum" else removable_entries
        return find(self.guard, name, self.hours(name, operation))


def _last_z_orders(root: str) -> dict[str, dict[str, int]]:
    """Return the time of the last sort or Z-order by table and partition, in milliseconds since the epoch."""
    columns = ["table_name", "operation", "outcome", "event_time", "partitions"]
    try:
        rows = light_table(root, EVENTS_TABLE, columns).to_pylist()
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


def refuse_short_retention(request: MaintenanceRequest) -> None:
    """Refuse a retention below a week without --unsafe."""
    if request.retention_hours is not None and not math.isfinite(request.retention_hours):
        raise UsageError(
            f"--retention-hours must be a finite number, got {request.retention_hours}",
            "write a number such as 240",
        )
    for name in (table.name for table in _requested_tables(request)):
        hours = {operation: _retention_hours(request, name, operation) for operation in request.operations}
        short = [
            operation for operation in DELETING_OPERATIONS if hours.get(operation, SAFE_HOURS) < SAFE_HOURS
        ]
        if short and not request.unsafe:
            raise UsageError(
                f"{short[0]} of {name} would keep {hours[short[0]]:g} hours, less than {SAFE_HOURS:g}: "
                "this may delete files that running readers and writers need",
                "keep more hours, or add --unsafe if no other process uses the lake",
            )


def _requested_tables(request: MaintenanceRequest) -> Iterator[Table]:
    """Yield the requested tables, or all, with the policies of the settings."""
    for name in request.tables or (table.name for table in catalog.TABLES):
        table = catalog.table(name, request.settings.tables)
        if table.name != LEASE:
            yield table
        elif request.tables:
            raise UsageError(
                f"{LEASE} is maintained by the holder of the lease", "leave it out of the command"
            )


def _retention_hours(request: MaintenanceRequest, name: str, operation: Operation) -> float:
    """Return the retention of an operation in hours: the requested one, else that of the policy."""
    upkeep = catalog.table(name, request.settings.tables).upkeep
    if request.retention_hours is not None:
        return request.retention_hours
    # Log entries are kept at least as long as data files: a file without its entry cannot be read.
    return upkeep.vacuum_hours if operation == "vacuum" else max(upkeep.log_hours, upkeep.vacuum_hours)


def removal_text(inspection: LakeInspection, name: str, operation: Operation, removal: Removal) -> str:
    """Describe what an operation deletes; recorded as its reason."""
    what = "files" if operation == "vacuum" else "files of the log"
    size = f"{len(removal.files):,} {what}, {removal.size_bytes / 2**20:,.1f} MB"
    text = f"{size}, not needed for {inspection.hours(name, operation):g} hours"
    return f"{text}; {kept_text(removal)}" if removal.kept else text


def kept_text(removal: Removal) -> str:
    """List the readers of files that are old enough to be deleted."""
    shown = [f"{count:,} for {reader}" for reader, count in list(removal.kept.items())[:MAX_LISTED]]
    more = f" and {len(removal.kept) - MAX_LISTED:,} others" if len(removal.kept) > MAX_LISTED else ""
    return f"{sum(removal.kept.values()):,} older ones are kept: {', '.join(shown)}{more}"
