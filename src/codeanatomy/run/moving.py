"""Tables on their way back to what they were: by a run that holds the lease, and tells of each.

    with writing(ask, ["requests"], progress, session) as work:
        versions = work.moved([move_to("lake", "cpg_nodes", 7, 4)], "asked for")     # {"cpg_nodes": 8}
        work.publish(snapshot, versions)

A table that is what it shall be gets no version. What a commit has made is looked at before anything is
published. Each table that was moved is a row of delta_maintenance, also if a later one fails.

Tests: `tests/test_restoring.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, structs
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.config import Settings
from codeanatomy.errors import CodeAnatomyError, CommitConflict, TableMissing
from codeanatomy.logs import Log
from codeanatomy.query.snapshot import Snapshot
from codeanatomy.run.progress import Progress
from codeanatomy.run.republish import Republished, publish_again
from codeanatomy.run.state import new_run_id
from codeanatomy.run.stopping import stoppable
from codeanatomy.storage.duck import local
from codeanatomy.storage.lease import Lease, acquire
from codeanatomy.storage.light import location, logged_paths
from codeanatomy.storage.manifest import manifest_version
from codeanatomy.storage.policy import StorePolicy, is_local, reach
from codeanatomy.storage.readable import are_alike
from codeanatomy.storage.replay import state_of
from codeanatomy.storage.restore import OPERATION, bring_back
from codeanatomy.storage.small import append_small, refuse_unwritable
from codeanatomy.storage.stamps import Commit
from codeanatomy.storage.store import Store, checked_root

EVENTS = "delta_maintenance"
# Sequence of the commits that bring a table back: before those of the steps of a run.
BACK = -1


class Ask(Struct, frozen=True):
    """The lake that is restored, and how."""

    lake: str
    settings: Settings
    # Wait for another run that writes to the lake.
    wait: bool = True


class Move(Struct, frozen=True):
    """A table, its newest version, and the version whose rows it shall have; none: no rows."""

    table: str
    newest: int
    to: int | None
    # It is what it shall be already.
    is_there: bool


class Work:
    """A restore under way: it holds the lease."""

    def __init__(
        self, ask: Ask, progress: Progress, session: Callable[[], SparkSession], run_id: str, lease: Lease
    ) -> None:
        self.ask, self.progress, self.session = ask, progress, session
        self.run_id, self.lease = run_id, lease
        self.root, self.tables = ask.lake, ask.settings.tables
        self.started, self.began = datetime.now(UTC), time.monotonic()
        # What is published from here on is not what this run has seen.
        self.manifest = manifest_version(self.root)
        self.current = published(self.root)
        lease.begin(None if self.current is None else self.current.run_id)
        self.events: list[dict[str, Any]] = []

    def moved(self, moves: Sequence[Move], why: str) -> dict[str, int]:
        """Do what is to be done, and return the version that each table has then."""
        pins, left = {}, sum(not move.is_there for move in moves)
        done = 0
        try:
            for move in moves:
                pins[move.table] = move.newest if move.is_there else self._moved(move, why)
                done += not move.is_there
                if not move.is_there:
                    self.progress.tell(OPERATION, f"{done}/{left} tables", last=done == left)
        except CodeAnatomyError:
            # What was done is told; it is undone by whoever writes next.
            with suppress(CodeAnatomyError, OSError):
                self._record()
            raise
        self._record()
        return pins

    def _moved(self, move: Move, why: str) -> int:
        began = time.monotonic()
        event = {
            "run_id": self.run_id,
            "event_no": len(self.events),
            "event_time": datetime.now(UTC),
            "table_name": move.table,
            "operation": OPERATION,
            "reason": why if move.to is None else f"{why}: version {move.to}",
            "from_version": move.newest,
        }
        self.lease.check()
        try:
            made = bring_back(self.root, move.table, move.to, Commit(self.run_id, BACK), self._store)
            self._confirm(move, made)
        except CodeAnatomyError:
            self.events.append({**event, "outcome": "failed", "duration_ms": _ms(began)})
            raise
        figures = _figures(self.root, move.table, move.newest, made)
        told = {"outcome": "done", "delta_version": made, "duration_ms": _ms(began)}
        self.events.append({**event, **told, **figures})
        return made

    def _store(self) -> Store:
        return Store.of(self.ask.settings, self.session(), self.root)

    def _confirm(self, move: Move, made: int) -> None:
        """See that the version has what was asked for: what is left of a dead run may still write."""
        if not is_local(self.root):
            return
        right = (
            not logged_paths(self.root, move.table, made)
            if move.to is None
            else are_alike(self.root, move.table, made, move.to)
        )
        if not right:
            raise CommitConflict(
                f"version {made} of {move.table} is not what was to be restored: somebody else has written",
                "repeat the command when the other writer is done",
            )

    def _record(self) -> None:
        if self.events:
            append_small(self.root, catalog.table(EVENTS, self.tables), self.events, Commit(self.run_id))

    def publish(self, lake: Snapshot, versions: Mapping[str, int]) -> None:
        """Publish a state with its tables at these versions; readers see it from then on."""
        self.lease.check()
        run = Republished(
            self.run_id,
            "restore",
            self.started,
            versions,
            None if self.current is None else self.current.published_at,
            {OPERATION: _ms(self.began)},
        )
        publish_again(self.root, lake, run, after=self.manifest)
        with suppress(CodeAnatomyError):
            # From now on a lake without a manifest is one that has lost it.
            self.lease.begin(self.run_id)


def checked(ask: Ask) -> Ask:
    """The same, if the lake can be written to, by a path that does not depend on the current folder."""
    policy = StorePolicy.of(ask.settings.runtime)
    root = checked_root(ask.lake, policy.require_local_paths)
    reach(root, policy)
    refuse_unwritable(root)
    return structs.replace(ask, lake=root)


@contextmanager
def writing(
    ask: Ask, repositories: Sequence[str], progress: Progress, session: Callable[[], SparkSession]
) -> Iterator[Work]:
    """The restore, from the moment that nobody else may write."""
    run_id = new_run_id()

    def tell(said: str) -> None:
        progress.tell("lease", said)
        Log(run_id=run_id).info(said)

    with (
        stoppable(),
        acquire(ask.lake, run_id, repositories, wait=ask.wait, tell=tell, base_run_id=None) as lease,
    ):
        yield Work(ask, progress, session, run_id, lease)


def published(root: str) -> Snapshot | None:
    """What readers see, if anything."""
    try:
        return Snapshot.open(root)
    except TableMissing:
        return None


def move_to(root: str, name: str, newest: int, to: int | None) -> Move:
    """What it takes to give a table, which is at its newest version, the rows of another."""
    is_there = not logged_paths(root, name, newest) if to is None else are_alike(root, name, newest, to)
    return Move(name, newest, to, is_there)


def _figures(root: str, name: str, before: int, after: int) -> dict[str, int]:
    """The files that came and went."""
    if not is_local(root):
        return {}
    place = location(local(root), name)
    old, new = state_of(place, before).adds, state_of(place, after).adds
    came, went = new.keys() - old.keys(), old.keys() - new.keys()
    return {
        "files_added": len(came),
        "files_removed": len(went),
        "bytes_added": sum(new[path].size for path in came),
        "bytes_removed": sum(old[path].size for path in went),
    }


def _ms(began: float) -> int:
    return round(1000 * (time.monotonic() - began))
