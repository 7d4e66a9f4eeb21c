"""Report what is published in a lake, and whether the sources have changed since.

    result = status("lake", options)
    result.repositories[0].source_state     # "changed": the files are not those that were built
    result.writer                           # Writer("20260501T120000Z-5f0c1d2e", "writing", ...), or None

A source has changed if a build with the same options would read other bytes; to decide that, its files are
listed and read in this process, without a JVM. A relative source path is resolved against the current folder.

Tests: `tests/unit/query/test_status.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from codeanatomy.catalog.readers import readers_of
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.read.readable import damaged_tables
from codeanatomy.errors import TableMissing
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.lake.lease import is_stale, read_lease
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import RecordedRun, Snapshot, recorded_runs
from codeanatomy.query.answers import SourceState
from codeanatomy.query.status.freshness import source_state

if TYPE_CHECKING:
    from codeanatomy.config import RuntimeProfile


class RepositoryStatus(Struct, frozen=True):
    """A published repository."""

    repo_id: str
    # The run that built it, and when that was published.
    run_id: str
    built_at: datetime
    source: str | None
    git_commit: str | None
    # Files that were read.
    files: int | None
    # None if it was built without a graph.
    nodes: int | None
    edges: int | None
    source_state: SourceState


class Writer(Struct, frozen=True):
    """A run that holds the lease of the lake."""

    run_id: str
    # dead: it ended without releasing the lease; the next build undoes its unpublished changes.
    state: Literal["writing", "dead"]
    host: str
    since: datetime
    repositories: tuple[str, ...]


class FailedRun(Struct, frozen=True):
    """A run that did not build all of its repositories."""

    run_id: str
    finished_at: datetime
    # Error messages by repository.
    errors: dict[str, str]


class LakeStatus(Struct, frozen=True):
    """The published state of a lake, and the run that writes to it."""

    lake: str
    # None if nothing is published.
    run_id: str | None
    published_at: datetime | None
    repositories: tuple[RepositoryStatus, ...]
    # Number of repositories, listed or not.
    total: int
    writer: Writer | None
    # The newest run, if it has failed.
    failed: FailedRun | None
    # Programs that open all published tables.
    readers: tuple[str, ...] = ()
    # Of the newest build; None if it was not recorded.
    engine_facts: EngineFacts | None = None
    # Tables of which a file or a log entry is missing or unreadable; a build makes them again.
    damaged: tuple[str, ...] = ()


def status(
    root: str,
    options: ExtractOptions,
    as_of: str | None = None,
    limit: int | None = None,
    profile: RuntimeProfile | None = None,
) -> LakeStatus:
    """Report at most `limit` published repositories, the current writer, and the newest failed run.

    Sources in object stores are opened with the storage options of the profile, and unknown without one.
    """
    writer = _writer(root)
    lake, runs = _open_snapshot(root, as_of, writer)
    rows = list(lake.repositories.values()) if lake else []
    # Maintenance runs publish again what builds have made.
    builders = {row.repo_id: row for run in runs for row in run.succeeded if row.mode != "maintenance"}
    return LakeStatus(
        root,
        lake.run_id if lake else None,
        lake.published_at if lake else None,
        tuple(_repository(row, builders.get(row.repo_id, row), options, profile) for row in rows[:limit]),
        len(rows),
        writer,
        _failed(runs[-1]) if runs else None,
        readers_of(name for pin in lake.pins.values() for name in pin.features) if lake else (),
        next((facts for run in reversed(runs) if (facts := _engine(run))), None),
        tuple(damaged_tables(root, {name: pin.version for name, pin in lake.pins.items()})) if lake else (),
    )


def _open_snapshot(
    root: str, as_of: str | None, writer: Writer | None
) -> tuple[Snapshot | None, Sequence[RecordedRun]]:
    """Open the published snapshot, if any, and list the runs up to it."""
    if as_of is not None:
        return Snapshot.open(root, as_of), recorded_runs(root, as_of)
    try:
        runs = recorded_runs(root)
    except TableMissing:
        # The first build of the lake is running, or was interrupted.
        if writer is None:
            raise
        return None, ()
    return (Snapshot.after(root, runs) if any(run.succeeded for run in runs) else None), runs


def _repository(
    row: RunManifest, built: RunManifest, options: ExtractOptions, profile: RuntimeProfile | None
) -> RepositoryStatus:
    graph = row.row_counts if "graph" in row.plan_fingerprints else {}
    return RepositoryStatus(
        row.repo_id,
        built.run_id,
        built.finished_at,
        row.repo_root,
        row.git_commit,
        row.row_counts.get("repo_file_blobs_v1"),
        graph.get("cpg_nodes"),
        graph.get("cpg_edges"),
        source_state(row, options, profile),
    )


def _engine(run: RecordedRun) -> EngineFacts | None:
    """Return the engine of a run that has published a repository."""
    return next((row.engine_facts for row in run.succeeded if row.engine_facts), None)


def _writer(root: str) -> Writer | None:
    row = read_lease(root)
    if row is None or row.state == "released":
        return None
    state: Literal["writing", "dead"] = "dead" if is_stale(row, datetime.now(UTC)) else "writing"
    return Writer(row.run_id, state, row.host, row.acquired_at, tuple(row.repo_ids))


def _failed(run: RecordedRun) -> FailedRun | None:
    errors = {row.repo_id: row.error or row.status for row in run.rows if row.status != "succeeded"}
    return FailedRun(run.run_id, run.finished_at, errors) if errors else None
