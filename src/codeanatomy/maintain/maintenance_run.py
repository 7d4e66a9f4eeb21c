"""A run that is no build: it holds the lease, makes versions of tables, publishes them and tells what it did.

    with writing(Ask("lake", settings), ["requests"], progress, session) as run:
        ...                                                     # versions of tables
        run.publish(snapshot, {"cpg_nodes": 8}, "maintenance")
        run.record([run.event("cpg_nodes", "optimize", "96 small files", outcome="done")])

What a build that has died has left to go on from is kept, unless something else is published meanwhile.
Tests: `tests/unit/maintain/test_maintenance.py`, `tests/unit/maintain/test_restore.py`.
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
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.replay import logged_versions
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import location, newest_version_or_none
from codeanatomy.delta.store import Store, normalize_root
from codeanatomy.delta.store_policy import StorePolicy, is_local, register_policy
from codeanatomy.delta.write.small import append_small, refuse_unwritable
from codeanatomy.errors import CodeAnatomyError, StorageFailure, TableMissing
from codeanatomy.lake.lease import Lease, acquire, read_lease
from codeanatomy.lake.manifest import Mode, manifest_version
from codeanatomy.lake.redaction import redactor
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.logs import Log
from codeanatomy.maintain.republish import Republished, publish_again
from codeanatomy.pipeline.context import new_run_id
from codeanatomy.progress import Progress
from codeanatomy.run.record import refuse_strangers
from codeanatomy.run.signals import stoppable

EVENTS = "delta_maintenance"


class Ask(Struct, frozen=True):
    """The lake that is written to, and how."""

    lake: str
    settings: Settings
    # Wait for another run that writes to the lake.
    wait: bool = True


def checked(ask: Ask) -> Ask:
    """The same, if the lake can be written to, by a path that does not depend on the current folder."""
    policy = StorePolicy.from_profile(ask.settings.runtime)
    root = normalize_root(ask.lake, policy.require_local_paths)
    register_policy(root, policy)
    refuse_unwritable(root)
    return structs.replace(ask, lake=root)


class Writing:
    """Such a run under way."""

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
        self.has_published = False
        self._refuse_lost()
        # What is made after these versions, and published, must be our own.
        self.floor = newest_versions(self.root)
        lease.set_base_run(None if self.current is None else self.current.run_id)
        self._keep_journal()

    def _refuse_lost(self) -> None:
        left = self.lease.before
        if self.current is None and left is not None and left.base_run_id is not None:
            raise StorageFailure(
                f"{self.root} has lost its manifest: run {left.base_run_id} was published",
                "restore meta/run_manifest from a copy, or build into a new lake",
            )

    def _keep_journal(self) -> None:
        """What a build that has died has left is for the next build, if it builds on what is published."""
        left, base = self.lease.before, None if self.current is None else self.current.run_id
        if left is not None and left.base_run_id == base != left.run_id:
            for step in left.done:
                self.lease.record_step(step)

    def store(self) -> Store:
        """The tables, for what only Spark does to them."""
        return Store.from_settings(self.ask.settings, self.session(), self.root)

    def publish(
        self, lake: Snapshot, versions: Mapping[str, int], mode: Mode, step_ms: Mapping[str, int] = {}
    ) -> None:
        """Publish a state with its tables at these versions; readers see it from then on."""
        self.lease.check()
        refuse_strangers(self.root, {name: self.floor.get(name, -1) for name in versions}, self.run_id)
        since = None if self.current is None else self.current.published_at
        run = Republished(self.run_id, mode, self.started, versions, since, step_ms)
        publish_again(self.root, lake, run, after=self.manifest)
        self.has_published = True
        with suppress(CodeAnatomyError):
            # From now on a lake without a manifest is one that has lost it.
            self.lease.set_base_run(self.run_id)

    def event(self, table: str, operation: str, reason: str, **told: Any) -> dict[str, Any]:
        """A row of what was done to a table; `record` numbers it."""
        return {
            "run_id": self.run_id,
            "event_time": datetime.now(UTC),
            "table_name": table,
            "operation": operation,
            "reason": reason,
            **told,
        }

    def record(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Add what was done to delta_maintenance."""
        if events:
            hidden = redactor(self.ask.settings.runtime)
            rows = [{"event_no": number, **hidden(dict(event))} for number, event in enumerate(events)]
            append_small(self.root, catalog.table(EVENTS, self.tables), rows, Commit(self.run_id))


@contextmanager
def writing(
    ask: Ask,
    repositories: Sequence[str],
    progress: Progress,
    session: Callable[[], SparkSession],
) -> Iterator[Writing]:
    """The run, from the moment that nobody else may write."""
    run_id = new_run_id()

    def tell(said: str) -> None:
        progress.update("lease", said)
        Log(run_id=run_id).info(said)

    with stoppable():
        # As it was: a lake that has lost its manifest is known by it.
        left = read_lease(ask.lake)
        base = None if left is None else left.base_run_id
        lease = acquire(ask.lake, run_id, repositories, wait=ask.wait, report=tell, base_run_id=base)
        run: Writing | None = None
        try:
            run = Writing(ask, progress, session, run_id, lease)
            yield run
        finally:
            lease.release(keep_journal=run is None or not run.has_published)


def ms_since(began: float) -> int:
    """Milliseconds since a moment of the monotonic clock."""
    return round(1000 * (time.monotonic() - began))


def newest_versions(root: str) -> dict[str, int]:
    """The newest version of each table that is there."""
    names = [table.name for table in catalog.TABLES]
    if not is_local(root):
        far = {name: newest_version_or_none(root, name) for name in names}
        return {name: version for name, version in far.items() if version is not None}
    # By the names of the entries: what is in one need not be readable.
    near = {name: logged_versions(location(local_path(root), name)) for name in names}
    return {name: versions[-1] for name, versions in near.items() if versions}


def published(root: str) -> Snapshot | None:
    """What readers see, if anything."""
    try:
        return Snapshot.open(root)
    except TableMissing:
        return None
