"""Tables on their way back to what they were: by a run that holds the lease, and tells of each.

    with writing(ask, ["requests"], progress, session) as run:
        versions = moved(run, [move_to("lake", "cpg_nodes", 7, 4)], "asked for")     # {"cpg_nodes": 8}
        run.publish(snapshot, versions, "restore")

A table that is what it shall be gets no version. What a commit has made is looked at before anything is
published. Each table that was moved is a row of delta_maintenance, also if a later one fails.

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
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import location, logged_paths
from codeanatomy.delta.read.readable import have_same_content
from codeanatomy.delta.store_policy import is_local
from codeanatomy.delta.write.restore import OPERATION, restore_with_fallback
from codeanatomy.errors import CodeAnatomyError, CommitConflict
from codeanatomy.maintain.maintenance_run import Writing, ms_since

# Sequence of the commits that bring a table back: before those of the steps of a run.
BACK = -1


class Move(Struct, frozen=True):
    """A table, its newest version, and the version whose rows it shall have; none: no rows."""

    table: str
    newest: int
    to: int | None
    # It is what it shall be already.
    is_there: bool


def moved(run: Writing, moves: Sequence[Move], why: str) -> dict[str, int]:
    """Do what is to be done, and return the version that each table has then."""
    events: list[dict[str, Any]] = []
    pins = {move.table: move.newest for move in moves}
    left = [move for move in moves if not move.is_there]
    try:
        for number, move in enumerate(left, start=1):
            pins[move.table] = _moved(run, move, why, events)
            run.progress.update(OPERATION, f"{number}/{len(left)} tables", last=number == len(left))
    except CodeAnatomyError:
        # What was done is told; it is undone by whoever writes next.
        with suppress(CodeAnatomyError, OSError):
            run.record(events)
        raise
    run.record(events)
    return pins


def _moved(run: Writing, move: Move, why: str, events: list[dict[str, Any]]) -> int:
    began = time.monotonic()
    reason = why if move.to is None else f"{why}: version {move.to}"
    event = run.event(move.table, OPERATION, reason, from_version=move.newest)
    run.lease.check()
    try:
        made = restore_with_fallback(run.root, move.table, move.to, Commit(run.run_id, BACK), run.store)
        _confirm(run.root, move, made)
    except CodeAnatomyError:
        events.append({**event, "outcome": "failed", "duration_ms": ms_since(began)})
        raise
    figures = _figures(run.root, move.table, move.newest, made)
    events.append(
        {**event, "outcome": "done", "delta_version": made, "duration_ms": ms_since(began), **figures}
    )
    return made


def _confirm(root: str, move: Move, made: int) -> None:
    """See that the version has what was asked for: what is left of a dead run may still write."""
    if not is_local(root):
        return
    right = (
        not logged_paths(root, move.table, made)
        if move.to is None
        else have_same_content(root, move.table, made, move.to)
    )
    if not right:
        raise CommitConflict(
            f"version {made} of {move.table} is not what was to be restored: somebody else has written",
            "repeat the command when the other writer is done",
        )


def move_to(root: str, name: str, newest: int, to: int | None) -> Move:
    """What it takes to give a table, which is at its newest version, the rows of another."""
    is_there = not logged_paths(root, name, newest) if to is None else have_same_content(root, name, newest, to)
    return Move(name, newest, to, is_there)


def _figures(root: str, name: str, before: int, after: int) -> dict[str, int]:
    """The files that came and went."""
    if not is_local(root):
        return {}
    place = location(local_path(root), name)
    old, new = replay_log(place, before).adds, replay_log(place, after).adds
    came, went = new.keys() - old.keys(), old.keys() - new.keys()
    return {
        "files_added": len(came),
        "files_removed": len(went),
        "bytes_added": sum(new[path].size for path in came),
        "bytes_removed": sum(old[path].size for path in went),
    }
