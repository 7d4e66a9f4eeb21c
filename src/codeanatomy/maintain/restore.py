"""Restore a lake to a published run, or one table to an earlier version.

    request = WriteRequest("lake", settings)
    restore_run(request, "20260501T12", progress, session).run_id                 # a new run with that state
    restore_table_version(request, "cpg_nodes", "4", progress, session).redone    # ("graph",)

A restore is a run of its own: it holds the lease, commits the earlier files to every table that differs (no
data is rewritten), and publishes copies of the manifest rows of that run, which pin the new versions. So the
states in between stay in the history and can be restored in turn. Repositories that were built only later are
missing until they are built again. All versions are checked first: if one cannot be read, nothing is changed.
If a restore ends half way, readers still see the published state, and the next build or restore rolls the
tables back.

A table that is restored alone is not consistent with its inputs. So the published rows mark the step that
makes it, and all steps after it, as made from other inputs: the next build repeats them. Tables that no run
pins, which are records of runs, are only restored.

Tests: `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal

from msgspec import Struct, structs
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.read.duck import count_rows
from codeanatomy.delta.read.light import newest_version_or_none, table_facts
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.delta.read.readable import have_same_content, require_readable
from codeanatomy.errors import UsageError, VersionGone
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.lease import TABLE as LEASE
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.lake.manifest import OutputPin, RunManifest
from codeanatomy.lake.snapshot import Snapshot, is_time, parse_time
from codeanatomy.logs import Log
from codeanatomy.maintain.maintenance_run import (
    MaintenanceRun,
    WriteRequest,
    milliseconds_since,
    open_maintenance_run,
    published_snapshot,
    resolve_request,
)
from codeanatomy.maintain.retention import commit_time, version_at
from codeanatomy.maintain.rollback import TableRollback, plan_rollback, roll_back_tables
from codeanatomy.plan.run_plan import written_tables
from codeanatomy.plan.steps import RESTORED_PREFIX, steps_of
from codeanatomy.progress import Progress


class RestoredTable(Struct, frozen=True):
    """A table after a restore."""

    table: str
    from_version: int
    # The restored version; null: the table did not exist, so it has no rows.
    restored_version: int | None
    # The new version; the previous one if there was nothing to do.
    version: int
    rows: int | None


class RestoreReport(Struct, frozen=True):
    """The result of a restore."""

    lake: str
    status: Literal["restored", "unchanged"]
    # The run that is published now: the restore itself, if it published.
    run_id: str | None
    # The restored run; null for a single table.
    restored_run: str | None
    tables: tuple[RestoredTable, ...]
    repositories: tuple[str, ...]
    # Steps that the next build repeats.
    redone: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float


def restore_run(
    request: WriteRequest, as_of: str, progress: Progress, session: Callable[[], SparkSession]
) -> RestoreReport:
    """Restore the state that a run published, or that was published at a time."""
    request = resolve_request(request)
    tables = written_tables(request.settings.tables)
    # Checked before waiting for the lease.
    before = Snapshot.open(request.lake, as_of)
    with listed_once(request.lake):
        _require_readable(before, tables)
    with open_maintenance_run(request, list(before.repositories), progress, session) as run:
        # A time may select another run by now.
        target = Snapshot.open(request.lake, as_of)
        with listed_once(request.lake):
            _require_readable(target, tables)
            rollbacks = [
                plan_rollback(
                    request.lake, name, newest, target.pins[name].version if name in target.pins else None
                )
                for name in tables
                if (newest := newest_version_or_none(request.lake, name)) is not None
            ]
        pins = {each.table: each.newest for each in rollbacks if each.to is not None}
        is_done = all(each.is_done for each in rollbacks) and _is_published(run.current, target, pins)
        if not is_done:
            pins = roll_back_tables(run, rollbacks, f"run {target.run_id}")
            run.publish(target, pins, "restore", {"restore": milliseconds_since(run.began)})
        Log(run_id=run.run_id).info(f"run {target.run_id} is restored")
        missing = [] if run.current is None else sorted({*run.current.repositories} - {*target.repositories})
        return RestoreReport(
            request.lake,
            "unchanged" if is_done else "restored",
            run.current.run_id if is_done and run.current is not None else run.run_id,
            target.run_id,
            _restored_tables(request.lake, rollbacks, {each.table: each.newest for each in rollbacks} | pins),
            tuple(target.repositories),
            (),
            (f"missing until they are built again: {', '.join(missing)}",) if missing else (),
            round(time.monotonic() - run.began, 3),
        )


def restore_table_version(
    request: WriteRequest, name: str, to: str, progress: Progress, session: Callable[[], SparkSession]
) -> RestoreReport:
    """Restore one table to a version, or to its version at a time."""
    request = resolve_request(request)
    table = catalog.table(name, request.settings.tables)
    if name in (MANIFEST, LEASE):
        raise UsageError(
            f"{name} cannot be restored alone",
            "restore all tables: codeanatomy restore --run RUN",
        )
    is_pinned = name in written_tables(request.settings.tables)
    version = _parse_version(request.lake, table, to, is_pinned=is_pinned)
    require_readable(request.lake, name, version)
    before = published_snapshot(request.lake)
    with open_maintenance_run(request, list(before.repositories) if before else [], progress, session) as run:
        require_readable(request.lake, name, version)
        rollback = plan_rollback(request.lake, name, newest_version(request.lake, name), version)
        lake = Snapshot.open(request.lake) if is_pinned else None
        is_done = rollback.is_done and (lake is None or _is_pinned(lake, name, version))
        steps: tuple[str, ...] = ()
        notes: tuple[str, ...] = ()
        if not is_done:
            pins = roll_back_tables(run, [rollback], "requested")
            if lake is not None:
                steps, notes = _publish_one_table(run, lake, table, pins[name])
        else:
            pins = {name: rollback.newest}
        Log(run_id=run.run_id).info(f"version {version} of {name} is restored")
        is_new = not is_done and lake is not None
        return RestoreReport(
            request.lake,
            "unchanged" if is_done else "restored",
            run.run_id if is_new else (run.current.run_id if run.current else None),
            None,
            _restored_tables(request.lake, [rollback], pins),
            tuple(lake.repositories) if lake is not None else (),
            steps,
            notes,
            round(time.monotonic() - run.began, 3),
        )


def _publish_one_table(
    run: MaintenanceRun, lake: Snapshot, table: Table, version: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Publish another version of one table; return the steps that the next build repeats, and notes."""
    counts, unpublished = _count_rows(run.root, table.name, version, lake)
    repeated = _steps_to_repeat(run.tables, table.name)
    if table.name == FAILURES and all(
        counts[repo_id] == row.row_counts.get(FAILURES, 0) for repo_id, row in lake.repositories.items()
    ):
        # It has all failures of the published runs; those of older runs do not concern any step.
        repeated = ()
    rows = {
        repo_id: structs.replace(
            row,
            plan_fingerprints={
                step: f"{RESTORED_PREFIX}{each}" if step in repeated else each
                for step, each in row.plan_fingerprints.items()
            },
            # Without them the next build redoes all files, not only changed ones.
            rule_fingerprints={
                step: each for step, each in row.rule_fingerprints.items() if step not in repeated
            },
            row_counts={**row.row_counts, table.name: counts[repo_id]},
        )
        for repo_id, row in lake.repositories.items()
    }
    pins = {table.name: OutputPin(table.name, version), **lake.pins}
    state = structs.replace(lake, repositories=rows, pins=pins)
    took = {"restore": milliseconds_since(run.began)}
    run.publish(state, {table.name: version}, "restore", took, repeated)
    known = {step for row in lake.repositories.values() for step in row.plan_fingerprints}
    note = f"it has rows of {', '.join(unpublished)} too, which the lake does not have now"
    return tuple(step for step in repeated if step in known), ((note,) if unpublished else ())


def _steps_to_repeat(tables: Sequence[Table], name: str) -> tuple[str, ...]:
    """Return the steps that write a table and all steps after them, in execution order."""
    steps = steps_of(tables)
    repeated = [step.name for step in steps if name in step.outputs]
    for step in steps:
        if step.name not in repeated and any(before in repeated for before in step.after):
            repeated.append(step.name)
    return tuple(step.name for step in steps if step.name in repeated)


def _count_rows(root: str, name: str, version: int, lake: Snapshot) -> tuple[Counter[str], list[str]]:
    """Count rows by repository (of failures only those of its published run); list other repositories."""
    by = ["repo_id", "run_id"] if name == FAILURES else ["repo_id"]
    counts: Counter[str] = Counter()
    for (repo_id, *made_by), count in count_rows(root, name, version, by).items():
        row = lake.repositories.get(repo_id)
        if name != FAILURES or (row is not None and [row.extract_run_id] == made_by):
            counts[repo_id] += count
    return counts, sorted(counts.keys() - lake.repositories.keys())


def _require_readable(lake: Snapshot, tables: Sequence[str]) -> None:
    """Refuse a run with a table that cannot be read; tables that left the catalogue are ignored."""
    for name, pin in lake.pins.items():
        if name in tables:
            try:
                require_readable(lake.root, name, pin.version)
            except VersionGone as error:
                message = f"run {lake.run_id} cannot be restored: {error.message}"
                raise VersionGone(message, error.hint) from error


def _parse_version(root: str, table: Table, to: str, *, is_pinned: bool) -> int:
    """Return the version of a table that a number or a time selects."""
    if to.isascii() and to.isdecimal():
        return int(to)
    if not is_time(to):
        raise UsageError(
            f"{to!r} is neither a version nor a time", "write it like 4, or like 2026-05-01T12:00Z"
        )
    if is_pinned:
        return Snapshot.open(root, to).pin(table.name).version
    # As with runs, all commits of that second are included.
    moment = parse_time(to).replace(microsecond=0) + timedelta(seconds=1)
    newest_version(root, table.name)
    folder = location(root, table.name)
    version = version_at(folder, moment)
    if commit_time(folder, version) > moment:
        raise UsageError(
            f"{table.name} did not exist at {to}",
            f"its first version was committed at {commit_time(folder, version):%FT%TZ}",
        )
    return version


def _is_published(current: Snapshot | None, target: Snapshot, pins: Mapping[str, int]) -> bool:
    """Whether the target state is already published."""
    if current is None or {name: current.pins[name].version for name in current.pins if name in pins} != pins:
        return False
    ours, theirs = (
        {row.repo_id: _content(row) for row in each.repositories.values()} for each in (current, target)
    )
    return ours == theirs


def _content(row: RunManifest) -> tuple[object, ...]:
    return row.source_digest, row.plan_fingerprints, row.row_counts, row.extract_run_id


def _is_pinned(lake: Snapshot, name: str, version: int) -> bool:
    return name in lake.pins and have_same_content(lake.root, name, lake.pins[name].version, version)


def _restored_tables(
    root: str, rollbacks: Sequence[TableRollback], versions: Mapping[str, int]
) -> tuple[RestoredTable, ...]:
    return tuple(
        RestoredTable(
            each.table,
            each.newest,
            each.to,
            versions[each.table],
            table_facts(root, each.table, versions[each.table]).rows,
        )
        for each in rollbacks
    )
