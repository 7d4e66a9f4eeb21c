"""Maintenance: the tables of a lake are looked at, and what their policies ask for is done and recorded.

    asked = Upkeep("lake", settings)
    report = maintain(asked, progress, open_session)
    report.outcomes[0].operation, report.outcomes[0].reason, report.outcomes[0].outcome

Where nothing is to be done nothing is written, and no session is opened. Else the lease of the lake is taken:
no build writes meanwhile. Tables are optimized, the new versions are published (`maintain.republish`), for readers
open what the manifest pins; then files and log entries go that nobody needs, and all of it is recorded in
delta_maintenance. A table that fails does not stop the others. Where a build that has died has left versions
that nobody has published, no published table gets a new one before the next build, which undoes that or goes
on with it. What maintenance itself has left so is published by the next one: no row of it is another.

Tests: `tests/unit/maintain/test_maintenance.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct, structs
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.entries import write_checkpoint
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import is_local
from codeanatomy.delta.write.evolve import evolve
from codeanatomy.errors import CodeAnatomyError, LeaseLost, StillNeeded, UsageError
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.maintain.choose import OPERATIONS, Task, z_order
from codeanatomy.maintain.inspection import (
    BY_SPARK,
    DAMAGE,
    REMOVING,
    Look,
    Outcome,
    Result,
    Upkeep,
    kept_text,
    refuse_unsafe,
    removal_text,
)
from codeanatomy.maintain.maintenance_run import Ask, Writing, checked, ms_since, writing
from codeanatomy.maintain.optimize import optimize
from codeanatomy.maintain.removal import remove
from codeanatomy.maintain.table_state import Condition, label
from codeanatomy.progress import Progress
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

# Tables that Spark works on at the same time.
TABLES_AT_ONCE = 3


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
    # By table, for whom that was kept which is old enough to go.
    kept: dict[str, str]
    seconds: float


def maintain(asked: Upkeep, progress: Progress, session: Callable[[], SparkSession]) -> UpkeepReport:
    """Look at the tables, and do what is worth doing."""
    began = time.monotonic()
    ask = checked(Ask(asked.lake, asked.settings, asked.wait))
    if not is_local(ask.lake):
        raise UsageError(
            f"{ask.lake} is no local folder", "maintain it where its files are, or with Spark's SQL"
        )
    asked = structs.replace(asked, lake=local_path(ask.lake))
    refuse_unsafe(asked)
    before = Look(asked)
    tasks = list(before.tasks())
    if asked.dry_run or not (tasks or before.unpublished):
        planned = tuple(_planned(before, task) for task in tasks)
        return _report(asked, None, before, (*planned, *before.broken), began)
    with writing(ask, ("all, for maintenance",), progress, session) as run:
        # Somebody may have written since.
        now = Look(asked)
        outcomes = _carried_out(run, now)
        return _report(asked, run, now, (*outcomes, *now.broken), began)


def _report(
    asked: Upkeep, run: Writing | None, found: Look, outcomes: tuple[Outcome, ...], began: float
) -> UpkeepReport:
    return UpkeepReport(
        asked.lake,
        None if run is None else run.run_id,
        run is not None and run.has_published,
        tuple(found.conditions.values()),
        outcomes,
        found.left_alone,
        found.kept,
        round(time.monotonic() - began, 3),
    )


def _planned(found: Look, task: Task) -> Outcome:
    outcome = _begun(found, task, "planned")
    if task.operation not in REMOVING:
        return outcome
    removal = found.removal(task.table, task.operation)
    return structs.replace(
        outcome,
        retention_hours=found.hours(task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )


def _begun(found: Look, task: Task, outcome: Result) -> Outcome:
    version = found.conditions[task.table].version
    partitions = tuple(label(sorted(part.items())) for part in task.partitions)
    return Outcome(task.table, task.operation, task.reason, outcome, version, partitions=partitions)


def _carried_out(run: Writing, found: Look) -> tuple[Outcome, ...]:
    """Do it, publish it and record it, also if it ends before all is done."""
    outcomes: list[Outcome] = []
    try:
        tasks = list(found.tasks())
        _with_spark(run, found, [task for task in tasks if task.operation in BY_SPARK], outcomes)
        _publish(run, found, outcomes)
        later = [task for task in tasks if task.operation not in BY_SPARK]
        # There may be new versions, and a run that reads them.
        now = Look(found.asked) if later and outcomes else found
        for number, task in enumerate(later, start=1):
            run.lease.check()
            outcomes.append(_attempt(_begun(found, task, "done"), partial(_light, now, task)))
            run.progress.update("upkeep", f"{number}/{len(later)} tables", last=number == len(later))
    except LeaseLost:
        # Who has lost the lease may not write.
        raise
    except BaseException:
        with suppress(CodeAnatomyError, OSError):
            _record(run, outcomes)
        raise
    _record(run, outcomes)
    return tuple(outcomes)


def _publish(run: Writing, found: Look, outcomes: Sequence[Outcome]) -> None:
    """Let readers see the versions that were made, now or by maintenance that has died."""
    lake = run.current
    if lake is None:
        return
    made = {each.table_name: each.delta_version for each in outcomes if each.delta_version is not None}
    # The manifest is one of the tables that were optimized.
    run.manifest = made.get(MANIFEST, run.manifest)
    versions = {**found.unpublished, **made}
    new = {
        name: version
        for name, version in versions.items()
        if name in lake.pins and version != lake.pins[name].version
    }
    if new:
        run.publish(lake, new, "maintenance", {"optimize": ms_since(run.began)})


def _record(run: Writing, outcomes: Sequence[Outcome]) -> None:
    run.record([run.event(each.table_name, each.operation, each.reason, **_told(each)) for each in outcomes])


def _told(outcome: Outcome) -> dict[str, Any]:
    """What is recorded of an outcome beside its table, operation and reason."""
    fields = structs.asdict(outcome)
    return {name: fields[name] for name in fields if name not in ("table_name", "operation", "reason")}


def _with_spark(run: Writing, found: Look, tasks: Sequence[Task], outcomes: list[Outcome]) -> None:
    """The operations that make new versions, several tables at a time."""
    if not tasks:
        return
    store = run.store()
    by_table: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: OPERATIONS.index(task.operation)):
        by_table.setdefault(task.table, []).append(task)
    work = inheritable_thread_target(store.spark)(partial(_of_table, run, found, store))
    with ThreadPoolExecutor(TABLES_AT_ONCE, "upkeep") as threads:
        for number, done in enumerate(threads.map(work, by_table.values()), start=1):
            outcomes += done
            told = f"{number:,}/{len(by_table):,} tables"
            run.progress.update("optimize", told, last=number == len(by_table))


def _of_table(run: Writing, found: Look, store: Store, tasks: Sequence[Task]) -> list[Outcome]:
    return [
        _attempt(_begun(found, task, "done"), partial(_heavy, run, found, store, task, number))
        for number, task in enumerate(tasks)
    ]


def _attempt(outcome: Outcome, do: Callable[[Outcome], Outcome]) -> Outcome:
    """An operation; what goes wrong with one table is told and stops no other."""
    began = time.monotonic()
    try:
        outcome = do(outcome)
    except LeaseLost:
        raise
    except StillNeeded as problem:
        outcome = structs.replace(outcome, outcome="refused", reason=f"{problem.message}; {problem.hint}")
    except (*DAMAGE, *ENGINE_ERRORS) as problem:
        why = (
            cause_of(problem)
            if isinstance(problem, ENGINE_ERRORS)
            else getattr(problem, "message", str(problem))
        )
        outcome = structs.replace(outcome, outcome="failed", reason=why)
    return structs.replace(outcome, duration_ms=ms_since(began))


def _heavy(run: Writing, found: Look, store: Store, task: Task, number: int, outcome: Outcome) -> Outcome:
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
        deleted_share=0.0 if found.asked.by_hand else table.upkeep.compact_deleted,
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


def _light(found: Look, task: Task, outcome: Outcome) -> Outcome:
    asked = found.asked
    if task.operation == "checkpoint":
        return structs.replace(outcome, delta_version=write_checkpoint(found.guard.place(task.table)))
    removal = found.removal(task.table, task.operation)
    if removal.kept and asked.by_hand and not asked.keep_needed:
        raise StillNeeded(
            kept_text(removal), f"--keep-needed removes the other {len(removal.files):,}, which nobody needs"
        )
    remove(removal)
    return structs.replace(
        outcome,
        reason=removal_text(found, task.table, task.operation, removal),
        retention_hours=found.hours(task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )
