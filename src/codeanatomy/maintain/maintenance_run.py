"""Run maintenance or a restore under the lease: make versions of tables, publish and record them.

    with open_maintenance_run(WriteRequest("lake", settings), ["requests"], progress, session) as run:
        ...                                                     # new versions of tables
        run.publish(snapshot, {"cpg_nodes": 8}, "maintenance")
        run.record([run.event("cpg_nodes", "optimize", "96 small files", outcome="done")])

The journal of a build that died is kept, so that the next build can continue it, unless this run publishes.
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
from codeanatomy.delta.lake_tables import normalize_root
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.log.replay import list_log
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.delta.write.small_rows import append_small, refuse_unwritable
from codeanatomy.errors import CodeAnatomyError, StorageFailure, TableMissing
from codeanatomy.lake.lease import Lease, acquire, read_lease
from codeanatomy.lake.manifest import Mode, manifest_version
from codeanatomy.lake.observations import redactor
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.logs import Log
from codeanatomy.maintain.republish import RepublishingRun, republish
from codeanatomy.pipeline.context import new_run_id
from codeanatomy.progress import Progress
from codeanatomy.run.record import refuse_foreign_commits
from codeanatomy.run.signals import raise_on_sigterm

EVENTS_TABLE = "delta_maintenance"


class WriteRequest(Struct, frozen=True):
    """The lake to write, and whether to wait for its lease."""

    lake: str
    settings: Settings
    # Wait while another run writes the lake.
    wait: bool = True


def resolve_request(request: WriteRequest) -> WriteRequest:
    """Return the request with an absolute lake path; refuse a lake that cannot be written."""
    policy = StorePolicy.from_profile(request.settings.runtime)
    root = normalize_root(request.lake, policy.require_local_paths)
    register_policy(root, policy)
    refuse_unwritable(root)
    return structs.replace(request, lake=root)


class MaintenanceRun:
    """A run that holds the lease and is no build."""

    def __init__(
        self,
        request: WriteRequest,
        progress: Progress,
        session: Callable[[], SparkSession],
        run_id: str,
        lease: Lease,
    ) -> None:
        self.request, self.progress, self.session = request, progress, session
        self.run_id, self.lease = run_id, lease
        self.root, self.tables = request.lake, request.settings.tables
        self.started, self.began = datetime.now(UTC), time.monotonic()
        # The manifest version that this run has seen; publishing fails if it has changed.
        self.manifest = manifest_version(self.root)
        self.current = published_snapshot(self.root)
        self.has_published = False
        self._refuse_lost_manifest()
        # Later versions of these tables must be made by this run, or publishing is refused.
        self.initial_versions = newest_versions(self.root)
        lease.set_base_run(None if self.current is None else self.current.run_id)
        self._keep_journal()

    def _refuse_lost_manifest(self) -> None:
        before = self.lease.before
        if self.current is None and before is not None and before.base_run_id is not None:
            raise StorageFailure(
                f"{self.root} has lost its manifest: run {before.base_run_id} was published",
                "restore meta/run_manifest from a backup, or build into a new lake",
            )

    def _keep_journal(self) -> None:
        """Keep the journal of a build that died, if it was based on the published run."""
        before, base = self.lease.before, None if self.current is None else self.current.run_id
        if before is not None and before.base_run_id == base != before.run_id:
            for step in before.done:
                self.lease.record_step(step)

    def store(self) -> Store:
        """Return the tables as Spark opens them."""
        return Store.from_settings(self.request.settings, self.session(), self.root)

    def publish(
        self,
        lake: Snapshot,
        versions: Mapping[str, int],
        mode: Mode,
        step_ms: Mapping[str, int] = {},
        repeated: tuple[str, ...] = (),
    ) -> None:
        """Publish a snapshot with tables at these versions; the next build runs `repeated` steps in full."""
        self.lease.check()
        refuse_foreign_commits(
            self.root, {name: self.initial_versions.get(name, -1) for name in versions}, self.run_id
        )
        since = None if self.current is None else self.current.published_at
        run = RepublishingRun(self.run_id, mode, self.started, versions, since, step_ms, repeated)
        republish(self.root, lake, run, after=self.manifest)
        self.has_published = True
        with suppress(CodeAnatomyError):
            # Recorded in the lease, so that a lost manifest is noticed.
            self.lease.set_base_run(self.run_id)

    def event(self, table: str, operation: str, reason: str, **fields: Any) -> dict[str, Any]:
        """Return a row of delta_maintenance; `record` numbers it."""
        return {
            "run_id": self.run_id,
            "event_time": datetime.now(UTC),
            "table_name": table,
            "operation": operation,
            "reason": reason,
            **fields,
        }

    def record(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to delta_maintenance."""
        if events:
            redact = redactor(self.request.settings.runtime)
            rows = [{"event_no": number, **redact(dict(event))} for number, event in enumerate(events)]
            append_small(self.root, catalog.table(EVENTS_TABLE, self.tables), rows, Commit(self.run_id))


@contextmanager
def open_maintenance_run(
    request: WriteRequest,
    repositories: Sequence[str],
    progress: Progress,
    session: Callable[[], SparkSession],
) -> Iterator[MaintenanceRun]:
    """Acquire the lease and yield the run; release the lease at the end."""
    run_id = new_run_id()

    def report(text: str) -> None:
        progress.update("lease", text)
        Log(run_id=run_id).info(text)

    with raise_on_sigterm():
        # The base run is kept: it shows that a lake has lost its manifest.
        before = read_lease(request.lake)
        base = None if before is None else before.base_run_id
        lease = acquire(
            request.lake, run_id, repositories, wait=request.wait, report=report, base_run_id=base
        )
        run: MaintenanceRun | None = None
        try:
            run = MaintenanceRun(request, progress, session, run_id, lease)
            yield run
        finally:
            lease.release(keep_journal=run is None or not run.has_published)


def milliseconds_since(began: float) -> int:
    """Return the milliseconds since a time of the monotonic clock."""
    return round(1000 * (time.monotonic() - began))


def newest_versions(root: str) -> dict[str, int]:
    """Return the newest version of each existing table."""
    names = [table.name for table in catalog.TABLES]
    # From the names of the log entries: a damaged entry does not matter here.
    with listed_once(root):
        newest = {name: list_log(location(root, name)).newest for name in names}
    return {name: version for name, version in newest.items() if version >= 0}


def published_snapshot(root: str) -> Snapshot | None:
    """Open the newest published snapshot; None if nothing is published."""
    try:
        return Snapshot.open(root)
    except TableMissing:
        return None
