"""Roll tables back to earlier versions under the lease, and record each.

    with open_maintenance_run(request, ["requests"], progress, session) as run:
        rollbacks = [plan_rollback("lake", "cpg_nodes", 7, 4)]
        versions = roll_back_tables(run, rollbacks, "run 20260501T12")     # {"cpg_nodes": 8}
        run.publish(snapshot, versions, "restore")

A table that has the wanted content already gets no new version. Each new version is checked before anything
is published. Each rolled back table is a row of delta_maintenance, also if a later one fails.

Tests: `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.light import logged_paths
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.read.readable import have_same_content
from codeanatomy.delta.write.restore import OPERATION, ROLLBACK_SEQUENCE, restore_with_fallback
from codeanatomy.errors import CodeAnatomyError, CommitConflict
from codeanatomy.maintain.maintenance_run import MaintenanceRun, milliseconds_since


class TableRollback(Struct, frozen=True):
    """A table, its newest version, and the version to restore; None: no rows."""

    table: str
    newest: int
    to: int | None
    # The newest version has the wanted content already.
    is_done: bool


def roll_back_tables(run: MaintenanceRun, rollbacks: Sequence[TableRollback], why: str) -> dict[str, int]:
    """Restore each table, and return the versions that the tables have then."""
    events: list[dict[str, Any]] = []
    pins = {each.table: each.newest for each in rollbacks}
    left = [each for each in rollbacks if not each.is_done]
    try:
        for number, rollback in enumerate(left, start=1):
            pins[rollback.table] = _roll_back(run, rollback, why, events)
            run.progress.update(OPERATION, f"{number}/{len(left)} tables", last=number == len(left))
    except CodeAnatomyError:
        # The next writer undoes the versions that were made.
        with suppress(CodeAnatomyError, OSError):
            run.record(events)
        raise
    run.record(events)
    return pins


def _roll_back(run: MaintenanceRun, rollback: TableRollback, why: str, events: list[dict[str, Any]]) -> int:
    began = time.monotonic()
    reason = why if rollback.to is None else f"{why}: version {rollback.to}"
    event = run.event(rollback.table, OPERATION, reason, from_version=rollback.newest)
    run.lease.check()
    try:
        version = restore_with_fallback(
            run.root, rollback.table, rollback.to, Commit(run.run_id, ROLLBACK_SEQUENCE), run.store
        )
        _confirm(run.root, rollback, version)
    except CodeAnatomyError:
        events.append({**event, "outcome": "failed", "duration_ms": milliseconds_since(began)})
        raise
    counts = _file_counts(run.root, rollback.table, rollback.newest, version)
    events.append(
        {
            **event,
            "outcome": "done",
            "delta_version": version,
            "duration_ms": milliseconds_since(began),
            **counts,
        }
    )
    return version


def _confirm(root: str, rollback: TableRollback, version: int) -> None:
    """Check that the new version has the wanted content: a process of a dead run may still write."""
    is_right = (
        not logged_paths(root, rollback.table, version)
        if rollback.to is None
        else have_same_content(root, rollback.table, version, rollback.to)
    )
    if not is_right:
        raise CommitConflict(
            f"version {version} of {rollback.table} is not the restored state: another process has written",
            "run the command again when the other writer has finished",
        )


def plan_rollback(root: str, name: str, newest: int, to: int | None) -> TableRollback:
    """Plan the rollback of a table from its newest version to another; None: to no rows."""
    is_done = (
        not logged_paths(root, name, newest) if to is None else have_same_content(root, name, newest, to)
    )
    return TableRollback(name, newest, to, is_done)


def _file_counts(root: str, name: str, before: int, after: int) -> dict[str, int]:
    """Return the number and size of added and removed files."""
    folder = location(root, name)
    old, new = replay_log(folder, before).adds, replay_log(folder, after).adds
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    return {
        "files_added": len(added),
        "files_removed": len(removed),
        "bytes_added": sum(new[path].size for path in added),
        "bytes_removed": sum(old[path].size for path in removed),
    }
