"""Who still needs what of a table: the guards of everything that removes files or log entries.

    guard = Guard("lake")
    found = guard.needs("cpg_nodes", hours=168)
    found.files["part-0e6f.parquet"]      # "run 20260501T120000Z-1f00ba12, which reads version 4"
    found.first_version, found.first_by   # 4: the log has to reach back to there, and for whom

Needed is what these read: the newest published run, every run that was published within the retention and
the one that was published when it began; every version that was current within it; what a build that has
died left to go on from; and the change feed from each cursor on. The cursor of a repository that is refreshed
is the run it was built by: if that is older than the retention, the next refresh compares instead. A run that
is writing is no matter of this module: whoever removes something holds the lease of the lake
(`lake.lease`).

Tests: `tests/unit/maintain/test_removal.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from msgspec import Struct

from codeanatomy.delta.log.replay import (
    Action,
    Add,
    complete_checkpoints,
    entry_path,
    logged_versions,
    read_actions,
    read_commit_info,
    replay_log,
)
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import light_table, location
from codeanatomy.errors import StillNeeded, TableMissing
from codeanatomy.lake.lease import LeaseRow, read_lease
from codeanatomy.lake.manifest import RunManifest, read_manifest
from codeanatomy.maintain.table_state import named_files

CURSORS = "cdf_cursors"


class Needs(Struct, frozen=True):
    """What of a table must stay."""

    # By path below the table's folder: the run or cursor that reads it.
    files: dict[str, str]
    # The version that was current when the retention began, and the files of it and all after it.
    start: int
    recent: frozenset[str]
    # The log has to tell of this version and all after it, for this reason.
    first_version: int
    first_by: str


class Reader(Struct, frozen=True):
    """Somebody who reads a version of a table, or the changes after it."""

    version: int
    who: str
    # True: not the version but what the commits from it on have changed.
    is_feed: bool = False


class Guard:
    """A local lake at a moment, as those see it who read it: what is published is read once."""

    def __init__(self, root: str, now: datetime | None = None) -> None:
        self.root = local_path(root)
        self.now = now or datetime.now(UTC)
        self._needs: dict[tuple[str, float], Needs] = {}

    def needs(self, name: str, hours: float) -> Needs:
        """What must stay of a table, if versions are kept for so many hours."""
        if (name, hours) not in self._needs:
            since = self.now - timedelta(hours=hours)
            self._needs[name, hours] = _needs(
                self.place(name), list(self._readers(name, since)), since, hours
            )
        return self._needs[name, hours]

    def place(self, name: str) -> str:
        """The folder of a table."""
        return location(self.root, name)

    def _readers(self, name: str, since: datetime) -> Iterator[Reader]:
        """The published runs that count, the run that has not finished, and the cursors, of a table."""
        before = [run for run in self._runs if run.finished_at < since]
        for run in (*before[-1:], *(run for run in self._runs if run.finished_at >= since)):
            for pin in run.output_pins:
                if pin.table_name == name:
                    yield Reader(pin.version, f"run {run.run_id}")
        left = self._journal
        for step in left.pins if left is not None else ():
            if step.table_name == name:
                yield Reader(step.version, f"run {left.run_id if left else ''}, which has not finished")
        for cursor in self._cursors:
            if cursor["dataset"] == name:
                who = f"the cursor of {cursor['consumer']} for {cursor['repo_id']}"
                yield Reader(cursor["last_version"] + 1, who, is_feed=True)

    @cached_property
    def _runs(self) -> list[RunManifest]:
        """A row of each published run, in the order in which they ended."""
        published: dict[str, RunManifest] = {}
        for row in sorted(read_manifest(self.root), key=lambda row: row.finished_at):
            if row.status == "succeeded":
                published[row.run_id] = row
        if not published and self._journal is not None and self._journal.base_run_id is not None:
            raise StillNeeded(
                f"{self.root} has lost its manifest: run {self._journal.base_run_id} was published",
                "restore meta/run_manifest from a copy first, so that it is known what is needed",
            )
        return list(published.values())

    @cached_property
    def _journal(self) -> LeaseRow | None:
        return read_lease(self.root)

    @cached_property
    def _cursors(self) -> list[dict[str, Any]]:
        try:
            found = light_table(self.root, CURSORS, ["dataset", "consumer", "repo_id", "last_version"])
        except TableMissing:
            return []
        return list(found.to_pylist())


def _needs(place: str, readers: list[Reader], since: datetime, hours: float) -> Needs:
    # What the log cannot tell of any more is lost already.
    oldest = oldest_version(place)
    readers = [each for each in readers if each.version >= oldest]
    pinned = {each.version: each.who for each in reversed(readers) if not each.is_feed}
    feeds = [each for each in readers if each.is_feed]
    start = max(current_at(place, since), oldest)
    least = min(readers, key=lambda each: each.version, default=Reader(start, ""))
    files: dict[str, str] = {}
    recent: set[str] = set()
    for version, adds, told in _replayed(place, min(least.version, start), logged_versions(place)[-1]):
        if version in pinned:
            reads = f"{pinned[version]}, which reads version {version}"
            for path in _files_of(place, adds):
                files.setdefault(path, reads)
        if version == start:
            recent.update(_files_of(place, adds))
        changed = set(_changed_files(place, told))
        if version > start:
            recent |= changed
        for feed in feeds:
            if version >= feed.version:
                for path in changed:
                    files.setdefault(path, f"{feed.who}, which reads on from version {feed.version}")
    if least.version < start:
        return Needs(files, start, frozenset(recent), least.version, least.who)
    return Needs(files, start, frozenset(recent), start, f"versions of the last {hours:g} hours")


def committed_at(place: str, version: int) -> datetime:
    """When a version was made: by its own word or by the time of its entry, whichever is later."""
    told = read_commit_info(place, version).get("timestamp", 0) / 1000
    return datetime.fromtimestamp(max(entry_path(place, version).stat().st_mtime, told), UTC)


def oldest_version(place: str) -> int:
    """The oldest version that the log can tell of: the first, or that of the oldest checkpoint."""
    entries = logged_versions(place)
    if not entries or entries[0] == 0:
        return 0
    return min(complete_checkpoints(place), default=entries[0])


def current_at(place: str, moment: datetime) -> int:
    """The version that was the newest at a moment, or the first that the log tells of."""
    for version in reversed(logged_versions(place)):
        # The times of the files first: most entries need not be read.
        if entry_path(place, version).stat().st_mtime <= moment.timestamp() and (
            committed_at(place, version) <= moment
        ):
            return version
    return oldest_version(place)


def _replayed(place: str, first: int, newest: int) -> Iterator[tuple[int, dict[str, Add], list[Action]]]:
    """Each version from one on: the files it has, and what its commit has done."""
    adds = dict(replay_log(place, first).adds)
    yield first, adds, read_actions(place, first) if entry_path(place, first).is_file() else []
    for version in range(first + 1, newest + 1):
        told = read_actions(place, version)
        for action in told:
            if action.remove:
                adds.pop(action.remove.path, None)
        adds.update({action.add.path: action.add for action in told if action.add})
        yield version, adds, told


def _files_of(place: str, adds: Mapping[str, Add]) -> Iterator[str]:
    for add in adds.values():
        yield from named_files(place, add.path, add.deletion_vector)


def _changed_files(place: str, told: list[Action]) -> Iterator[str]:
    """What a commit has named: files that came or went, their vectors, and its change files."""
    for action in told:
        for side in (action.add, action.remove):
            if side:
                yield from named_files(place, side.path, side.deletion_vector)
        if action.cdc:
            yield from named_files(place, action.cdc.path, None)
