"""Bring a lake to other readers: every table without deletion vectors (all), or with them (modern).

    change_readers(WriteRequest("lake", settings), "all", progress)

The rows of tables and their change feeds stay as they are; the next refresh writes as the tables then are.
The new versions are published like those of other maintenance.

Tests: `tests/unit/maintain/test_readers.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.readers import VECTORS
from codeanatomy.catalog.settings import Readers
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.write.table_features import (
    OPERATION,
    drop_vectors,
    enable_vectors,
    has_vectors,
    open_writable,
)
from codeanatomy.errors import NeedsSpark, TableMissing
from codeanatomy.maintain.features import refuse_unpublished
from codeanatomy.maintain.inspection import Outcome
from codeanatomy.maintain.maintenance import MaintenanceReport, event_fields
from codeanatomy.maintain.maintenance_run import (
    MaintenanceRun,
    WriteRequest,
    milliseconds_since,
    newest_versions,
    open_maintenance_run,
    resolve_request,
)
from codeanatomy.progress import Progress


def change_readers(
    request: WriteRequest, readers: Readers, progress: Progress, *, dry_run: bool = False
) -> MaintenanceReport:
    """Change the features of all tables that differ, and publish the new versions."""
    began = time.monotonic()
    request = resolve_request(request)
    reason = f"readers {readers} was requested"
    if dry_run or not _differing(request, readers):
        planned = [Outcome(name, OPERATION, reason, "planned") for name in _differing(request, readers)]
        return _report(request, None, planned, began)
    with open_maintenance_run(request, ("all, for other readers",), progress, _no_session) as run:
        # A build with the wanted readers is refused, too.
        present = "modern" if readers == "all" else "all"
        refuse_unpublished(run, f"build first, as the lake is: codeanatomy build --readers {present} ...")
        outcomes: list[Outcome] = []
        try:
            for name, table in _differing(request, readers).items():
                progress.update("readers", name)
                outcomes.append(_change_table(run, table, readers, reason))
        finally:
            # Also if it fails for a later table.
            _publish(run, outcomes)
    return _report(request, run, outcomes, began)


def _differing(request: WriteRequest, readers: Readers) -> dict[str, Table]:
    """Return the tables to change; all of them are opened before the first is changed."""
    stored = newest_versions(request.lake)
    if not stored:
        raise TableMissing(f"{request.lake} has no tables", "give a lake that was built, or build it first")
    tables = [catalog.table(name, request.settings.tables) for name in stored]
    if readers == "modern":
        declared = {table.name for table in catalog.TABLES if VECTORS in table.write.enable_features}
        tables = [table for table in tables if table.name in declared]
    places = {table.name: location(request.lake, table.name) for table in tables}
    differing = [table for table in tables if has_vectors(table, places[table.name]) == (readers == "all")]
    for table in differing:
        open_writable(table, places[table.name])
    return {table.name: table for table in differing}


def _change_table(run: MaintenanceRun, table: Table, readers: Readers, reason: str) -> Outcome:
    began = time.monotonic()
    change = drop_vectors if readers == "all" else enable_vectors
    done = change(LakeTables(run.root), table, Commit(run.run_id))
    return Outcome(
        table.name,
        OPERATION,
        reason,
        "done",
        done.from_version,
        done.version,
        files_added=len(done.added),
        files_removed=len(done.removed),
        bytes_added=sum(file.size_bytes for file in done.added),
        bytes_removed=sum(file.size_bytes for file in done.removed),
        duration_ms=milliseconds_since(began),
    )


def _publish(run: MaintenanceRun, outcomes: list[Outcome]) -> None:
    pins: Mapping[str, object] = {} if run.current is None else run.current.pins
    versions = {
        each.table_name: each.delta_version
        for each in outcomes
        if each.table_name in pins and each.delta_version is not None
    }
    if run.current is not None and versions:
        run.publish(run.current, versions, "maintenance")
    run.record(
        [run.event(each.table_name, each.operation, each.reason, **event_fields(each)) for each in outcomes]
    )


def _report(
    request: WriteRequest, run: MaintenanceRun | None, outcomes: list[Outcome], began: float
) -> MaintenanceReport:
    return MaintenanceReport(
        request.lake,
        None if run is None else run.run_id,
        run is not None and run.has_published,
        (),
        tuple(outcomes),
        {},
        {},
        round(time.monotonic() - began, 3),
    )


def _no_session() -> SparkSession:
    raise NeedsSpark("readers are changed without a session", "report this as a bug")
