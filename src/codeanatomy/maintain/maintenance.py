"""Maintain the tables of a lake: inspect them, do what their policies require, and record it.

    request = MaintenanceRequest("lake", settings)
    report = maintain(request, progress, open_session)
    report.outcomes[0].operation, report.outcomes[0].reason, report.outcomes[0].outcome

If there is nothing to do, nothing is written and no session is opened. Otherwise maintenance takes the
lease of the lake, so that no build writes meanwhile. It optimizes tables and publishes the new versions
(`maintain.republish`), because readers open the versions that the manifest pins; then it deletes files and
log entries that no reader needs, and records everything in delta_maintenance. A table that fails does not
stop the others. If a build died and left unpublished versions, no published table gets a new version before
the next build, which undoes or continues that build. Unpublished versions of maintenance itself are
published by the next maintenance: they have the same rows.

Tests: `tests/unit/maintain/test_maintenance.py`, `tests/spark/test_maintenance.py`.
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
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.evolve import evolve
from codeanatomy.errors import CodeAnatomyError, LeaseLost, StillNeeded
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.maintain.choose import OPERATIONS, Task, order_columns
from codeanatomy.maintain.inspection import (
    DELETING_OPERATIONS,
    READ_ERRORS,
    SPARK_OPERATIONS,
    LakeInspection,
    MaintenanceRequest,
    Outcome,
    OutcomeStatus,
    kept_text,
    refuse_short_retention,
    removal_text,
)
from codeanatomy.maintain.maintenance_run import (
    MaintenanceRun,
    WriteRequest,
    milliseconds_since,
    open_maintenance_run,
    resolve_request,
)
from codeanatomy.maintain.optimize import compact, sort_files
from codeanatomy.maintain.removal import remove
from codeanatomy.maintain.table_state import TableState, partition_folder
from codeanatomy.progress import Progress
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

# Tables that Spark works on at the same time.
TABLES_AT_ONCE = 3


class MaintenanceReport(Struct, frozen=True):
    """The state of the tables before, and the operations that were done."""

    lake: str
    # None if nothing was done.
    run_id: str | None
    # Whether new versions were published.
    published: bool
    before: tuple[TableState, ...]
    outcomes: tuple[Outcome, ...]
    # Tables that must wait for a build, and why.
    left_alone: dict[str, str]
    # By table: the readers of files that are old enough to be deleted.
    kept: dict[str, str]
    seconds: float


def maintain(
    request: MaintenanceRequest, progress: Progress, session: Callable[[], SparkSession]
) -> MaintenanceReport:
    """Inspect the tables, and do what is worth doing."""
    began = time.monotonic()
    target = resolve_request(WriteRequest(request.lake, request.settings, request.wait))
    request = structs.replace(request, lake=target.lake)
    refuse_short_retention(request)
    before = LakeInspection(request)
    tasks = list(before.tasks())
    if request.dry_run or not (tasks or before.unpublished):
        planned = tuple(_planned_outcome(before, task) for task in tasks)
        return _report(request, None, before, (*planned, *before.unreadable), began)
    with open_maintenance_run(target, ("all, for maintenance",), progress, session) as run:
        # Another run may have written since.
        now = LakeInspection(request)
        outcomes = _execute(run, now)
        return _report(request, run, now, (*outcomes, *now.unreadable), began)


def _report(
    request: MaintenanceRequest,
    run: MaintenanceRun | None,
    inspection: LakeInspection,
    outcomes: tuple[Outcome, ...],
    began: float,
) -> MaintenanceReport:
    return MaintenanceReport(
        request.lake,
        None if run is None else run.run_id,
        run is not None and run.has_published,
        tuple(inspection.states.values()),
        outcomes,
        inspection.left_alone,
        inspection.kept,
        round(time.monotonic() - began, 3),
    )


def _planned_outcome(inspection: LakeInspection, task: Task) -> Outcome:
    outcome = _new_outcome(inspection, task, "planned")
    if task.operation not in DELETING_OPERATIONS:
        return outcome
    removal = inspection.removal(task.table, task.operation)
    return structs.replace(
        outcome,
        retention_hours=inspection.hours(task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )


def _new_outcome(inspection: LakeInspection, task: Task, outcome: OutcomeStatus) -> Outcome:
    version = inspection.states[task.table].version
    partitions = tuple(partition_folder(sorted(part.items())) for part in task.partitions)
    return Outcome(task.table, task.operation, task.reason, outcome, version, partitions=partitions)


def _execute(run: MaintenanceRun, inspection: LakeInspection) -> tuple[Outcome, ...]:
    """Run the tasks, publish and record the results, also if a later task fails."""
    outcomes: list[Outcome] = []
    try:
        tasks = list(inspection.tasks())
        _run_spark_tasks(
            run, inspection, [task for task in tasks if task.operation in SPARK_OPERATIONS], outcomes
        )
        _publish(run, inspection, outcomes)
        later = [task for task in tasks if task.operation not in SPARK_OPERATIONS]
        # The optimized tables have new versions, and a new run reads them.
        now = LakeInspection(inspection.request) if later and outcomes else inspection
        for number, task in enumerate(later, start=1):
            run.lease.check()
            outcomes.append(
                _attempt(_new_outcome(inspection, task, "done"), partial(_run_local_task, now, task))
            )
            run.progress.update("maintain", f"{number}/{len(later)} tables", last=number == len(later))
    except LeaseLost:
        # Without the lease nothing may be written.
        raise
    except BaseException:
        with suppress(CodeAnatomyError, OSError):
            _record(run, outcomes)
        raise
    _record(run, outcomes)
    return tuple(outcomes)


def _publish(run: MaintenanceRun, inspection: LakeInspection, outcomes: Sequence[Outcome]) -> None:
    """Publish the new versions, and those of earlier maintenance that died before it published."""
    lake = run.current
    if lake is None:
        return
    new_versions = {
        each.table_name: each.delta_version for each in outcomes if each.delta_version is not None
    }
    # The manifest may itself be an optimized table.
    run.manifest = new_versions.get(MANIFEST, run.manifest)
    versions = {**inspection.unpublished, **new_versions}
    changed = {
        name: version
        for name, version in versions.items()
        if name in lake.pins and version != lake.pins[name].version
    }
    if changed:
        run.publish(lake, changed, "maintenance", {"optimize": milliseconds_since(run.began)})


def _record(run: MaintenanceRun, outcomes: Sequence[Outcome]) -> None:
    run.record(
        [run.event(each.table_name, each.operation, each.reason, **event_fields(each)) for each in outcomes]
    )


def event_fields(outcome: Outcome) -> dict[str, Any]:
    """Return the fields of an outcome to record beside table, operation and reason."""
    fields = structs.asdict(outcome)
    return {name: fields[name] for name in fields if name not in ("table_name", "operation", "reason")}


def _run_spark_tasks(
    run: MaintenanceRun, inspection: LakeInspection, tasks: Sequence[Task], outcomes: list[Outcome]
) -> None:
    """Run the operations that make new versions, several tables at a time."""
    if not tasks:
        return
    store = run.store()
    by_table: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: OPERATIONS.index(task.operation)):
        by_table.setdefault(task.table, []).append(task)
    work = inheritable_thread_target(store.spark)(partial(_run_table_tasks, run, inspection, store))
    with ThreadPoolExecutor(TABLES_AT_ONCE, "maintenance") as threads:
        for number, done in enumerate(threads.map(work, by_table.values()), start=1):
            outcomes += done
            text = f"{number:,}/{len(by_table):,} tables"
            run.progress.update("optimize", text, last=number == len(by_table))


def _run_table_tasks(
    run: MaintenanceRun, inspection: LakeInspection, store: Store, tasks: Sequence[Task]
) -> list[Outcome]:
    return [
        _attempt(
            _new_outcome(inspection, task, "done"),
            partial(_run_spark_task, run, inspection, store, task, number),
        )
        for number, task in enumerate(tasks)
    ]


def _attempt(outcome: Outcome, operation: Callable[[Outcome], Outcome]) -> Outcome:
    """Run an operation; an error is its outcome and does not stop other tables."""
    began = time.monotonic()
    try:
        outcome = operation(outcome)
    except LeaseLost:
        raise
    except StillNeeded as error:
        outcome = structs.replace(outcome, outcome="refused", reason=f"{error.message}; {error.hint}")
    except (*READ_ERRORS, *ENGINE_ERRORS) as error:
        why = cause_of(error) if isinstance(error, ENGINE_ERRORS) else getattr(error, "message", str(error))
        outcome = structs.replace(outcome, outcome="failed", reason=why)
    return structs.replace(outcome, duration_ms=milliseconds_since(began))


def _run_spark_task(
    run: MaintenanceRun, inspection: LakeInspection, store: Store, task: Task, number: int, outcome: Outcome
) -> Outcome:
    run.lease.check()
    table = store.table(task.table)
    if task.operation == "properties":
        return structs.replace(outcome, delta_version=evolve(store, table).version)
    commit = Commit(run.run_id, number)
    if task.operation == "zorder":
        z_order = order_columns(table) if table.upkeep.z_order_cols else ()
        done = sort_files(store, task.table, commit, partitions=task.partitions, z_order=z_order)
    else:
        share = 0.0 if inspection.request.by_hand else table.upkeep.compact_deleted
        done = compact(store, task.table, commit, partitions=task.partitions, deleted_share=share)
    return structs.replace(
        outcome,
        delta_version=done.version,
        files_added=done.metrics.get("numAddedFiles"),
        files_removed=done.metrics.get("numRemovedFiles"),
        bytes_added=done.metrics.get("numAddedBytes"),
        bytes_removed=done.metrics.get("numRemovedBytes"),
        metrics=done.metrics,
    )


def _run_local_task(inspection: LakeInspection, task: Task, outcome: Outcome) -> Outcome:
    request = inspection.request
    if task.operation == "checkpoint":
        return structs.replace(outcome, delta_version=write_checkpoint(inspection.guard.folder(task.table)))
    removal = inspection.removal(task.table, task.operation)
    if removal.kept and request.by_hand and not request.keep_needed:
        raise StillNeeded(
            kept_text(removal),
            f"--keep-needed removes the other {len(removal.files):,}, which are not needed",
        )
    remove(removal)
    return structs.replace(
        outcome,
        reason=removal_text(inspection, task.table, task.operation, removal),
        retention_hours=inspection.hours(task.table, task.operation),
        files_removed=len(removal.files),
        bytes_removed=removal.size_bytes,
    )
