"""Maintenance: the tables of a lake are looked at, and what their policies ask for is done and recorded.

    asked = Upkeep("lake", settings)
    report = maintain(asked, progress, open_session)
    report.outcomes[0].operation, report.outcomes[0].reason, report.outcomes[0].outcome

Where nothing is to be done nothing is written, and no session is opened. Else the lease of the lake is taken:
no build writes meanwhile. Tables are optimized, the new versions are published (`run.republish`), for readers
open what the manifest pins; then files and log entries go that nobody needs, and all of it is recorded in
delta_maintenance. A table that fails does not stop the others. A table whose newest version is not the
published one has been written to by a build that has died; it is left to the next build, which will undo or
go on with that.

Tests: `tests/test_upkeep.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from msgspec import Struct, structs
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.errors import CodeAnatomyError, StillNeeded, TableMissing, UsageError
from codeanatomy.run.deciding import OPERATIONS, Operation, Task, tasks_of, z_order
from codeanatomy.run.progress import Progress
from codeanatomy.run.writing import EVENTS, Ask, Writing, checked, published, writing
from codeanatomy.storage.condition import Condition, condition_of
from codeanatomy.storage.duck import local
from codeanatomy.storage.entries import checkpointed
from codeanatomy.storage.evolve import evolve
from codeanatomy.storage.light import light_table, location, newest_version
from codeanatomy.storage.manifest import manifest_version
from codeanatomy.storage.optimizing import optimize
from codeanatomy.storage.policy import is_local
from codeanatomy.storage.removing import SAFE_HOURS, Removal, removable_entries, removable_files, remove
from codeanatomy.storage.stamps import Commit
from codeanatomy.storage.store import Store

# It is a single row, and whoever holds the lease tidies up.
LEASE = "run_lease"
# Tables that Spark works on at the same time.
TABLES_AT_ONCE = 3
# Operations that Spark does; they make versions.
BY_SPARK: tuple[Operation, ...] = ("properties", "optimize", "zorder")
REMOVING: tuple[Operation, ...] = ("vacuum", "cleanup_log")
SHOWN = 3

Result = Literal["planned", "done", "refused", "failed"]


class Upkeep(Struct, frozen=True):
    """What is asked for."""

    lake: str
    settings: Settings
    # None: all tables that are there.
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


class UpkeepReport(Struct, frozen=True):
    """What was found, and what was done."""

    lake: str
    # None: nothing was done.
    run_id: str | None
    # Whether it has published new versions.
    published: bool
    before: tuple[Condition, ...]
    outcomes: tuple[Outcome, ...]
    # Tables that were left alone, and why.
    left_alone: dict[str, str]
    seconds: float


def maintain(asked: Upkeep, progress: Progress, session: Callable[[], SparkSession]) -> UpkeepReport:
    """Look at the tables, and do what is worth doing."""
    began = time.monotonic()
    ask = checked(Ask(asked.lake, asked.settings, asked.wait))
    if not is_local(ask.lake):
        raise UsageError(
            f"{ask.lake} is no local folder", "maintain it where its files are, or with Spark's SQL"
        )
    asked = structs.replace(asked, lake=local(ask.lake))
    _refuse_unsafe(asked)
    before = conditions(asked)
    alone = left_alone(asked, before)
    tasks = list(_tasks(asked, before, alone))
    if asked.dry_run or not tasks:
        planned = tuple(_planned(asked, task, before[task.table]) for task in tasks)
        took = round(time.monotonic() - began, 3)
        return UpkeepReport(asked.lake, None, False, tuple(before.values()), planned, alone, took)
    with writing(ask, ("all, for maintenance",), progress, session) as run:
        # Somebody may have written since.
        now = conditions(asked)
        alone = left_alone(asked, now)
        outcomes = _carried_out(run, asked, now, alone)
    took = round(time.monotonic() - began, 3)
    return UpkeepReport(
        asked.lake, run.run_id, run.has_published, tuple(before.values()), outcomes, alone, took
    )


def _refuse_unsafe(asked: Upkeep) -> None:
    """A retention below a week is asked for twice."""
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


def conditions(asked: Upkeep) -> dict[str, Condition]:
    """The state of each table that is there, by name."""
    tables = {table.name: table for table in _asked_tables(asked)}
    ordered = _ordered(asked.lake)
    found: dict[str, Condition] = {}
    for name, table in tables.items():
        one = condition_of(location(asked.lake, name), table, ordered.get(name))
        if one is not None:
            found[name] = one
    missing = [name for name in asked.tables if name not in found]
    if missing or not found:
        raise TableMissing(
            f"{asked.lake} has no {' and no '.join(missing) or 'tables'}",
            "name a lake that was built, and tables of it",
        )
    return found


def _ordered(root: str) -> dict[str, int]:
    """When each table was last Z-ordered, in milliseconds since the epoch."""
    try:
        rows = light_table(root, EVENTS, ["table_name", "operation", "outcome", "event_time"]).to_pylist()
    except TableMissing:
        return {}
    times: dict[str, int] = {}
    for row in rows:
        if (row["operation"], row["outcome"]) == ("zorder", "done"):
            when = int(row["event_time"].timestamp() * 1000)
            times[row["table_name"]] = max(when, times.get(row["table_name"], 0))
    return times


def left_alone(asked: Upkeep, found: Mapping[str, Condition]) -> dict[str, str]:
    """Published tables that may not get new versions now, and why: a build has died, and left some."""
    lake = published(asked.lake)
    pins = {} if lake is None else {name: pin.version for name, pin in lake.pins.items()}
    written = {
        name: version
        for name, pin in pins.items()
        if (version := _newest(asked.lake, name)) is not None and version != pin
    }
    if not written:
        return {}
    named = ", ".join(f"{name} {version}" for name, version in sorted(written.items())[:SHOWN])
    why = f"{len(written)} tables have versions that nobody has published ({named}): build again first"
    return {name: why for name in found if name in pins}


def _newest(root: str, name: str) -> int | None:
    try:
        return newest_version(root, name)
    except TableMissing:
        return None


def _tasks(asked: Upkeep, found: Mapping[str, Condition], alone: Mapping[str, str]) -> Iterator[Task]:
    """What is worth doing, by the operations that were asked for."""
    now = datetime.now(UTC)
    for name, one in found.items():
        table = catalog.table(name, asked.settings.tables)
        for task in tasks_of(table, one, now, by_hand=asked.by_hand):
            if task.operation in asked.operations and not (task.operation in BY_SPARK and name in alone):
                yield task
        for operation in REMOVING:
            if operation in asked.operations:
                removal = _removal(asked, name, operation)
                if removal.files or (removal.kept and asked.by_hand):
                    yield Task(name, operation, _removing(asked, name, operation, removal))


def _removal(asked: Upkeep, name: str, operation: Operation) -> Removal:
    look = removable_files if operation == "vacuum" else removable_entries
    return look(asked.lake, name, _hours(asked, name, operation))


def _removing(asked: Upkeep, name: str, operation: Operation, removal: Removal) -> str:
    what = "files" if operation == "vacuum" else "files of the log"
    size = f"{len(removal.files):,} {what}, {removal.size_bytes / 2**20:,.1f} MB"
    told = f"{size}, that nobody has needed for {_hours(asked, name, operation):g} hours"
    return f"{told}; {_kept(removal)}" if removal.kept else told


def _kept(removal: Removal) -> str:
    shown = [f"{count:,} for {who}" for who, count in list(removal.kept.items())[:SHOWN]]
    more = f" and {len(removal.kept) - SHOWN:,} others" if len(removal.kept) > SHOWN else ""
    return f"{sum(removal.kept.values()):,} older ones are kept: {', '.join(shown)}{more}"


def _planned(asked: Upkeep, task: Task, found: Condition) -> Outcome:
    outcome = Outcome(task.table, task.operation, task.reason, "planned", found.version)
    if task.operation not in REMOVING:
        return outcome
    removal = _removal(asked, task.table, task.operation)
    return structs.replace(
        outcome,
        retention_hours=_hours(asked, task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )


def _carried_out(
    run: Writing, asked: Upkeep, found: Mapping[str, Condition], alone: Mapping[str, str]
) -> tuple[Outcome, ...]:
    """Do it, publish it and record it."""
    tasks = list(_tasks(asked, found, alone))
    by_spark = [task for task in tasks if task.operation in BY_SPARK]
    outcomes = _with_spark(run, asked, by_spark, found) if by_spark else []
    lake = run.current
    pins = {} if lake is None else lake.pins
    made = {
        each.table_name: each.delta_version
        for each in outcomes
        if each.table_name in pins and each.delta_version is not None
    }
    if lake is not None and made:
        # The manifest is one of the tables that were optimized.
        run.manifest = manifest_version(run.root)
        run.publish(lake, made, "maintenance", {"optimize": _ms(run.began)})
    later = [task for task in tasks if task.operation not in BY_SPARK]
    for number, task in enumerate(later, start=1):
        run.lease.check()
        outcomes.append(_attempt(task, found[task.table], partial(_light, asked, task)))
        run.progress.tell("upkeep", f"{number}/{len(later)} tables", last=number == len(later))
    run.record([run.event(each.table_name, each.operation, each.reason, **_told(each)) for each in outcomes])
    return tuple(outcomes)


def _told(outcome: Outcome) -> dict[str, Any]:
    """What is recorded of an outcome beside its table, operation and reason."""
    fields = structs.asdict(outcome)
    return {name: fields[name] for name in fields if name not in ("table_name", "operation", "reason")}


def _ms(began: float) -> int:
    return round(1000 * (time.monotonic() - began))


def _with_spark(
    run: Writing, asked: Upkeep, tasks: Sequence[Task], found: Mapping[str, Condition]
) -> list[Outcome]:
    """The operations that make new versions, several tables at a time."""
    store = run.store()
    by_table: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: OPERATIONS.index(task.operation)):
        by_table.setdefault(task.table, []).append(task)
    done: list[Outcome] = []
    with ThreadPoolExecutor(TABLES_AT_ONCE, "upkeep") as threads:
        for outcomes in threads.map(
            inheritable_thread_target(store.spark)(partial(_of_table, run, asked, store, found)),
            by_table.values(),
        ):
            done += outcomes
            told = f"{len({each.table_name for each in done}):,}/{len(by_table):,} tables"
            run.progress.tell("optimize", told, last=len(done) == len(tasks))
    return done


def _of_table(
    run: Writing, asked: Upkeep, store: Store, found: Mapping[str, Condition], tasks: Sequence[Task]
) -> list[Outcome]:
    return [
        _attempt(task, found[task.table], partial(_heavy, run, asked, store, task, number))
        for number, task in enumerate(tasks)
    ]


def _attempt(task: Task, found: Condition, do: Callable[[Outcome], Outcome]) -> Outcome:
    """An operation; what goes wrong with one table is told and stops no other."""
    began = time.monotonic()
    outcome = Outcome(task.table, task.operation, task.reason, "done", found.version)
    try:
        outcome = do(outcome)
    except StillNeeded as problem:
        outcome = structs.replace(outcome, outcome="refused", reason=f"{problem.message}; {problem.hint}")
    except CodeAnatomyError as problem:
        outcome = structs.replace(outcome, outcome="failed", reason=problem.message)
    return structs.replace(outcome, duration_ms=_ms(began))


def _heavy(run: Writing, asked: Upkeep, store: Store, task: Task, number: int, outcome: Outcome) -> Outcome:
    run.lease.check()
    table = store.table(task.table)
    if task.operation == "properties":
        return structs.replace(outcome, delta_version=evolve(store, table).version)
    done = optimize(
        store,
        task.table,
        Commit(run.run_id, number),
        partitions=task.partitions,
        order=z_order(table) if task.operation == "zorder" else (),
        deleted_share=0.0 if asked.by_hand else table.upkeep.compact_deleted,
    )
    return structs.replace(
        outcome,
        delta_version=done.version,
        files_added=done.metrics.get("numAddedFiles"),
        files_removed=done.metrics.get("numRemovedFiles"),
        bytes_added=done.metrics.get("numAddedBytes"),
        bytes_removed=done.metrics.get("numRemovedBytes"),
        metrics=done.metrics,
    )


def _light(asked: Upkeep, task: Task, outcome: Outcome) -> Outcome:
    if task.operation == "checkpoint":
        return structs.replace(outcome, delta_version=checkpointed(location(asked.lake, task.table)))
    removal = _removal(asked, task.table, task.operation)
    if removal.kept and asked.by_hand and not asked.keep_needed:
        raise StillNeeded(
            f"{_kept(removal)}", f"--keep-needed removes the other {len(removal.files):,}, which nobody needs"
        )
    remove(removal)
    return structs.replace(
        outcome,
        reason=_removing(asked, task.table, task.operation, removal),
        retention_hours=_hours(asked, task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )
