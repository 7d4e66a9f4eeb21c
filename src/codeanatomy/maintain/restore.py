"""A lake brought back to a published run, or one table of it to a version.

    restore_run(Ask("lake", settings), "20260501T12", progress, session).run_id     # a new run, of that state
    restore_one(Ask("lake", settings), "cpg_nodes", "4", progress, session).redone  # ("graph",)

A restore is a run of its own: it holds the lease, gives every table that is not what it was a commit with
the files of then (nothing is rewritten), and publishes rows like those of then, which pin the new versions.
So what came between stays in the history and can be restored in turn. Repositories that were built only later
are gone until they are built again. All versions are looked at first: if one cannot be read, nothing is
changed. If it ends half way, readers see what was published, and the next build or restore brings the tables
back.

One table alone does not follow from the others any more. So the published rows say of the step that makes it,
and of those after it, that they were made from something else: the next build does them again. Tables that
no run pins, which tell of runs, are brought back and that is all.

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
from codeanatomy.delta.read.duck import count_rows, local_path
from codeanatomy.delta.read.light import location, newest_version, newest_version_or_none, table_facts
from codeanatomy.delta.read.readable import have_same_content, require_readable
from codeanatomy.errors import UsageError, VersionGone
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.lease import TABLE as LEASE
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.lake.manifest import OutputPin, RunManifest
from codeanatomy.lake.snapshot import Snapshot, is_time, parse_time
from codeanatomy.logs import Log
from codeanatomy.maintain.maintenance_run import Ask, Writing, checked, ms_since, published, writing
from codeanatomy.maintain.retention import committed_at, current_at
from codeanatomy.maintain.rollback import Move, move_to, moved
from codeanatomy.plan.run_plan import written_tables
from codeanatomy.plan.steps import steps_of
from codeanatomy.progress import Progress

# Before the fingerprint of a step that is to be done again.
RESTORED = "restored-"


class RestoredTable(Struct, frozen=True):
    """A table after a restore."""

    table: str
    from_version: int
    # The version whose rows it has; null: it has none, for it was not there.
    restored_version: int | None
    # The version that has them now; the one before, if nothing had to be done.
    version: int
    rows: int | None


class RestoreReport(Struct, frozen=True):
    """What a restore did."""

    lake: str
    status: Literal["restored", "unchanged"]
    # The run that is published now: the restore, if it had anything to publish.
    run_id: str | None
    # The run that was restored; null for a table.
    restored_run: str | None
    tables: tuple[RestoredTable, ...]
    repositories: tuple[str, ...]
    # Steps that the next build does again.
    redone: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float


def restore_run(
    ask: Ask, as_of: str, progress: Progress, session: Callable[[], SparkSession]
) -> RestoreReport:
    """Publish again what a run has left, or what was published at a time."""
    ask = checked(ask)
    tables = written_tables(ask.settings.tables)
    # Before anybody is waited for.
    before = Snapshot.open(ask.lake, as_of)
    _require(before, tables)
    with writing(ask, list(before.repositories), progress, session) as run:
        # A time may mean another run by now.
        target = Snapshot.open(ask.lake, as_of)
        _require(target, tables)
        moves = [
            move_to(ask.lake, name, newest, target.pins[name].version if name in target.pins else None)
            for name in tables
            if (newest := newest_version_or_none(ask.lake, name)) is not None
        ]
        pins = {move.table: move.newest for move in moves if move.to is not None}
        is_done = all(move.is_there for move in moves) and _is_published(run.current, target, pins)
        if not is_done:
            pins = moved(run, moves, f"run {target.run_id}")
            run.publish(target, pins, "restore", {"restore": ms_since(run.began)})
        Log(run_id=run.run_id).info(f"run {target.run_id} is restored")
        gone = [] if run.current is None else sorted({*run.current.repositories} - {*target.repositories})
        return RestoreReport(
            ask.lake,
            "unchanged" if is_done else "restored",
            run.current.run_id if is_done and run.current is not None else run.run_id,
            target.run_id,
            _told(ask.lake, moves, {move.table: move.newest for move in moves} | pins),
            tuple(target.repositories),
            (),
            (f"gone until they are built again: {', '.join(gone)}",) if gone else (),
            round(time.monotonic() - run.began, 3),
        )


def restore_one(
    ask: Ask, name: str, to: str, progress: Progress, session: Callable[[], SparkSession]
) -> RestoreReport:
    """Give one table the rows of a version, or of a time."""
    ask = checked(ask)
    table = catalog.table(name, ask.settings.tables)
    if name in (MANIFEST, LEASE):
        raise UsageError(
            f"{name} is what a restore is recorded in",
            "restore a run as a whole: codeanatomy restore --run RUN",
        )
    is_pinned = name in written_tables(ask.settings.tables)
    version = _version(ask.lake, table, to, is_pinned=is_pinned)
    require_readable(ask.lake, name, version)
    found = published(ask.lake)
    with writing(ask, list(found.repositories) if found else [], progress, session) as run:
        require_readable(ask.lake, name, version)
        move = move_to(ask.lake, name, newest_version(ask.lake, name), version)
        lake = Snapshot.open(ask.lake) if is_pinned else None
        is_done = move.is_there and (lake is None or _is_pinned(lake, name, version))
        steps: tuple[str, ...] = ()
        notes: tuple[str, ...] = ()
        if not is_done:
            pins = moved(run, [move], "asked for")
            if lake is not None:
                steps, notes = _published_alone(run, lake, table, pins[name])
        else:
            pins = {name: move.newest}
        Log(run_id=run.run_id).info(f"version {version} of {name} is restored")
        is_new = not is_done and lake is not None
        return RestoreReport(
            ask.lake,
            "unchanged" if is_done else "restored",
            run.run_id if is_new else (run.current.run_id if run.current else None),
            None,
            _told(ask.lake, [move], pins),
            tuple(lake.repositories) if lake is not None else (),
            steps,
            notes,
            round(time.monotonic() - run.began, 3),
        )


def _published_alone(
    run: Writing, lake: Snapshot, table: Table, version: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Publish another version of one table; returns the steps that are to be done again, and what to say."""
    counts, strangers = _counted(run.root, table.name, version, lake)
    lost = _following(run.tables, table.name)
    if table.name == FAILURES and all(
        counts[repo_id] == row.row_counts.get(FAILURES, 0) for repo_id, row in lake.repositories.items()
    ):
        # It has what it must have of the published rows; what it has of older runs is no matter of a step.
        lost = ()
    rows = {
        repo_id: structs.replace(
            row,
            plan_fingerprints={
                step: f"{RESTORED}{each}" if step in lost else each
                for step, each in row.plan_fingerprints.items()
            },
            # A refresh would redo a few files.
            rule_fingerprints={
                step: each for step, each in row.rule_fingerprints.items() if step not in lost
            },
            row_counts={**row.row_counts, table.name: counts[repo_id]},
        )
        for repo_id, row in lake.repositories.items()
    }
    pins = {table.name: OutputPin(table.name, version), **lake.pins}
    state = structs.replace(lake, repositories=rows, pins=pins)
    run.publish(state, {table.name: version}, "restore", {"restore": ms_since(run.began)})
    known = {step for row in lake.repositories.values() for step in row.plan_fingerprints}
    told = f"it has rows of {', '.join(strangers)} too, which the lake does not have now"
    return tuple(step for step in lost if step in known), ((told,) if strangers else ())


def _following(tables: Sequence[Table], name: str) -> tuple[str, ...]:
    """The steps that write a table, and all that read what they write, in their order."""
    steps = steps_of(tables)
    found = [step.name for step in steps if name in (*step.outputs, *step.adds_to)]
    for step in steps:
        if step.name not in found and any(before in found for before in step.after):
            found.append(step.name)
    return tuple(step.name for step in steps if step.name in found)


def _counted(root: str, name: str, version: int, lake: Snapshot) -> tuple[Counter[str], list[str]]:
    """Rows of each repository, of failures those of its published rows; and who is not published."""
    by = ["repo_id", "run_id"] if name == FAILURES else ["repo_id"]
    counts: Counter[str] = Counter()
    for (repo_id, *made_by), count in count_rows(root, name, version, by).items():
        of_repo = lake.repositories.get(repo_id)
        if name != FAILURES or (of_repo is not None and [of_repo.extract_run_id] == made_by):
            counts[repo_id] += count
    return counts, sorted(counts.keys() - lake.repositories.keys())


def _require(lake: Snapshot, tables: Sequence[str]) -> None:
    """Refuse a run of which a table cannot be read; one that the catalogue had once is left alone."""
    for name, pin in lake.pins.items():
        if name in tables:
            try:
                require_readable(lake.root, name, pin.version)
            except VersionGone as problem:
                told = f"run {lake.run_id} cannot be had again: {problem.message}"
                raise VersionGone(told, problem.hint) from problem


def _version(root: str, table: Table, to: str, *, is_pinned: bool) -> int:
    """The version of a table that is meant by a number or a time."""
    if to.isascii() and to.isdecimal():
        return int(to)
    if not is_time(to):
        raise UsageError(
            f"{to!r} is neither a version nor a time", "write it like 4, or like 2026-05-01T12:00Z"
        )
    if is_pinned:
        return Snapshot.open(root, to).pin(table.name).version
    # As of runs, whatever happened in that second has happened.
    moment = parse_time(to).replace(microsecond=0) + timedelta(seconds=1)
    newest_version(root, table.name)
    place = location(local_path(root), table.name)
    found = current_at(place, moment)
    if committed_at(place, found) > moment:
        raise UsageError(
            f"{table.name} was not there at {to}",
            f"its first version is of {committed_at(place, found):%FT%TZ}",
        )
    return found


def _is_published(current: Snapshot | None, target: Snapshot, pins: Mapping[str, int]) -> bool:
    """Whether readers see that state already."""
    if current is None or {name: current.pins[name].version for name in current.pins if name in pins} != pins:
        return False
    ours, theirs = (
        {row.repo_id: _essence(row) for row in each.repositories.values()} for each in (current, target)
    )
    return ours == theirs


def _essence(row: RunManifest) -> tuple[object, ...]:
    return row.source_digest, row.plan_fingerprints, row.row_counts, row.extract_run_id


def _is_pinned(lake: Snapshot, name: str, version: int) -> bool:
    return name in lake.pins and have_same_content(lake.root, name, lake.pins[name].version, version)


def _told(root: str, moves: Sequence[Move], versions: Mapping[str, int]) -> tuple[RestoredTable, ...]:
    return tuple(
        RestoredTable(
            move.table,
            move.newest,
            move.to,
            versions[move.table],
            table_facts(root, move.table, versions[move.table]).rows,
        )
        for move in moves
    )
