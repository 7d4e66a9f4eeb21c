"""Find the data files and log entries that a vacuum must keep, and the readers that need them.

    guard = RetentionGuard("lake")
    retained = guard.retained_files("cpg_nodes", hours=168)
    retained.files["part-0e6f.parquet"]         # "run 20260501T120000Z-1f00ba12, which reads version 4"
    retained.first_version, retained.first_by   # 4: the oldest version the log must have, and the reader

Kept is what these read: the newest published run, every run published within the retention and the one that
was published when it began; every version that was current within it; the steps that a build which died has
finished; and the change feed after each cursor of the newest run of each repository (`lake.cursors`). A run
that is writing need not be considered: the process that deletes files holds the lease of the lake
(`lake.lease`).

Tests: `tests/unit/maintain/test_removal.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property

from msgspec import Struct

from codeanatomy.delta.log.replay import (
    Action,
    Add,
    commit_time_ms,
    list_log,
    logged_versions,
    read_actions,
    read_commit_info,
    replay_log,
)
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import StillNeeded
from codeanatomy.lake.cursors import Cursors, read_cursors
from codeanatomy.lake.lease import LeaseRow, read_lease
from codeanatomy.lake.manifest import RunManifest, read_manifest
from codeanatomy.maintain.table_state import referenced_paths


class RetainedFiles(Struct, frozen=True):
    """Files and log entries of a table that must be kept."""

    # By path relative to the table's folder: the run or cursor that reads it.
    files: dict[str, str]
    # The version that was current when the retention began, and the files of it and of all later versions.
    start: int
    recent: frozenset[str]
    # The oldest version that the log must be able to restore, and the reader that needs it.
    first_version: int
    first_by: str


class VersionReader(Struct, frozen=True):
    """A run that reads a version of a table, or a cursor that reads the changes after it."""

    version: int
    # Name of the run or cursor, as shown to people.
    name: str
    # True for a cursor, which reads the changes of the commits from this version on.
    is_feed: bool = False


class RetentionGuard:
    """The readers of a lake at a point in time; the manifest is read once."""

    def __init__(self, root: str, now: datetime | None = None) -> None:
        self.root = root
        self.now = now or datetime.now(UTC)
        self._retained: dict[tuple[str, float], RetainedFiles] = {}

    def retained_files(self, name: str, hours: float) -> RetainedFiles:
        """Return what must be kept of a table if versions are kept for `hours`."""
        if (name, hours) not in self._retained:
            since = self.now - timedelta(hours=hours)
            self._retained[name, hours] = _find_retained(
                self.folder(name), list(self._readers(name, since)), since, hours
            )
        return self._retained[name, hours]

    def folder(self, name: str) -> str:
        """Return the folder of a table."""
        return location(self.root, name)

    def _readers(self, name: str, since: datetime) -> Iterator[VersionReader]:
        """Yield the readers of a table: published runs, an unfinished run, and cursors."""
        before = [run for run in self._runs if run.finished_at < since]
        for run in (*before[-1:], *(run for run in self._runs if run.finished_at >= since)):
            for pin in run.output_pins:
                if pin.table_name == name:
                    yield VersionReader(pin.version, f"run {run.run_id}")
        journal = self._journal
        for step in journal.pins if journal is not None else ():
            if step.table_name == name:
                yield VersionReader(
                    step.version, f"run {journal.run_id if journal else ''}, which has not finished"
                )
        for repo_id, cursors in self._cursors.items():
            for consumer, cursor in cursors.items():
                if name in cursor.versions:
                    reader = f"the cursor of {consumer} for {repo_id}"
                    yield VersionReader(cursor.versions[name] + 1, reader, is_feed=True)

    @cached_property
    def _runs(self) -> list[RunManifest]:
        """One row of each published run, ordered by the end of the run."""
        published: dict[str, RunManifest] = {}
        for row in sorted(read_manifest(self.root), key=lambda row: row.finished_at):
            if row.status == "succeeded":
                published[row.run_id] = row
        if not published and self._journal is not None and self._journal.base_run_id is not None:
            raise StillNeeded(
                f"{self.root} has lost its manifest: run {self._journal.base_run_id} was published",
                "restore meta/run_manifest from a backup first",
            )
        return list(published.values())

    @cached_property
    def _journal(self) -> LeaseRow | None:
        return read_lease(self.root)

    @cached_property
    def _cursors(self) -> dict[str, Cursors]:
        """The cursors of the newest published run of each repository."""
        rows = sorted(read_manifest(self.root), key=lambda row: row.finished_at)
        return read_cursors(self.root, {row.repo_id: row.run_id for row in rows if row.status == "succeeded"})


def _find_retained(folder: str, readers: list[VersionReader], since: datetime, hours: float) -> RetainedFiles:
    # Versions before the oldest one that the log can restore are lost already.
    oldest = oldest_version(folder)
    readers = [each for each in readers if each.version >= oldest]
    pinned = {each.version: each.name for each in reversed(readers) if not each.is_feed}
    feeds = [each for each in readers if each.is_feed]
    start = max(version_at(folder, since), oldest)
    least = min(readers, key=lambda each: each.version, default=VersionReader(start, ""))
    files: dict[str, str] = {}
    recent: set[str] = set()
    for version, adds, actions in _replay_versions(
        folder, min(least.version, start), logged_versions(folder)[-1]
    ):
        if version in pinned:
            reader = f"{pinned[version]}, which reads version {version}"
            for path in _data_files(folder, adds):
                files.setdefault(path, reader)
        if version == start:
            recent.update(_data_files(folder, adds))
        changed = set(_changed_files(folder, actions))
        if version > start:
            recent |= changed
        for feed in feeds:
            if version >= feed.version:
                for path in changed:
                    files.setdefault(path, f"{feed.name}, which reads on from version {feed.version}")
    if least.version < start:
        return RetainedFiles(files, start, frozenset(recent), least.version, least.name)
    return RetainedFiles(files, start, frozenset(recent), start, f"versions of the last {hours:g} hours")


def commit_time(folder: str, version: int) -> datetime:
    """Return the time of a commit: its recorded one or that of its log entry, whichever is later."""
    recorded = read_commit_info(folder, version).get("timestamp", 0) / 1000
    return datetime.fromtimestamp(max(commit_time_ms(folder, version) / 1000, recorded), UTC)


def oldest_version(folder: str) -> int:
    """Return the oldest version that the log can restore: the first, or that of the oldest checkpoint."""
    listing = list_log(folder)
    first = min(listing.entries, default=0)
    return min(listing.checkpoints, default=first) if first else 0


def version_at(folder: str, moment: datetime) -> int:
    """Return the version that was the newest at a time; the oldest in the log if all are later."""
    for version, entry in reversed(list_log(folder).entries.items()):
        # The times of files are compared first: most entries need not be read.
        if entry.modified_ms / 1000 <= moment.timestamp() and commit_time(folder, version) <= moment:
            return version
    return oldest_version(folder)


def _replay_versions(
    folder: str, first: int, newest: int
) -> Iterator[tuple[int, dict[str, Add], list[Action]]]:
    """Yield each version from `first` on with its files and the actions of its commit."""
    adds = dict(replay_log(folder, first).adds)
    yield first, adds, read_actions(folder, first) if commit_time_ms(folder, first) else []
    for version in range(first + 1, newest + 1):
        actions = read_actions(folder, version)
        for action in actions:
            if action.remove:
                adds.pop(action.remove.path, None)
        adds.update({action.add.path: action.add for action in actions if action.add})
        yield version, adds, actions


def _data_files(folder: str, adds: Mapping[str, Add]) -> Iterator[str]:
    for add in adds.values():
        yield from referenced_paths(folder, add.path, add.deletion_vector)


def _changed_files(folder: str, actions: list[Action]) -> Iterator[str]:
    """Yield the paths of a commit: added and removed files, their deletion vectors, and change files."""
    for action in actions:
        for side in (action.add, action.remove):
            if side:
                yield from referenced_paths(folder, side.path, side.deletion_vector)
        if action.cdc:
            yield from referenced_paths(folder, action.cdc.path, None)
