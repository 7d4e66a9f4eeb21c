"""A lake as its readers see it: every table at the version that one published run pins. No JVM.

    lake = Snapshot.open("lake")                                 # the newest published run
    lake = Snapshot.open("lake", "20260501T12")                  # a run; its first characters are enough
    lake = Snapshot.open("lake", "2026-05-01T14:00+02:00")       # the newest that was published by then
    lake.rows("cpg_nodes", ["node_id", "path"])
    lake.repositories["requests"].git_commit

A run pins the tables of the whole lake, those it has not written too, so one run is one state of all
repositories. What is written while somebody reads is in versions that nobody has pinned yet.

Runs are in the order in which they ended, for a run that had to wait for another began before it. A run
none of whose repositories succeeded has published nothing and cannot be opened. A time without a zone is
UTC, as are all times that are printed; a date without a time is its first moment. A run belongs to the
second in which it ended. A run that has restored another says which repositories there are: those that were
built only after the one that it restored are gone until they are built again.

Tests: `tests/unit/lake/test_snapshot.py`, `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from codeanatomy.catalog.tables.observe import TABLES
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files, light_table, newest_version
from codeanatomy.errors import (
    CodeAnatomyError,
    StorageFailure,
    TableMissing,
    UnknownName,
    UsageError,
    VersionGone,
)
from codeanatomy.lake.manifest import OutputPin, RunManifest, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

# What runs have done: of every run, whichever is opened.
RECORDS = frozenset(table.name for table in TABLES)
# Names of runs begin with a date too, but without dashes.
DATE = re.compile(r"\d{4}-\d\d-\d\d")
# So many runs are named where one is not known.
NAMED = 5
# The newest run, whatever its name.
LATEST = "latest"


class RecordedRun(Struct, frozen=True):
    """A run that has ended: its rows in the manifest, one for each repository."""

    run_id: str
    rows: tuple[RunManifest, ...]

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return min(row.started_at for row in self.rows)

    @property
    def finished_at(self) -> datetime:
        """When it was recorded."""
        return max(row.finished_at for row in self.rows)

    @property
    def succeeded(self) -> tuple[RunManifest, ...]:
        """The repositories that it has built; without any, it has published nothing."""
        return tuple(row for row in self.rows if row.status == "succeeded")

    @property
    def is_restore(self) -> bool:
        """Whether it says which repositories there are: those of its rows, and no others."""
        return any(row.mode == "restore" for row in self.succeeded)


class Snapshot(Struct, frozen=True):
    """One published state of a lake."""

    root: str
    run_id: str
    published_at: datetime
    # By table.
    pins: dict[str, OutputPin]
    # What each repository was last made from.
    repositories: dict[str, RunManifest]

    @classmethod
    def open(cls, root: str, as_of: str | None = None) -> Snapshot:
        """The newest published run, the one that is named, or the newest at a time."""
        runs = recorded_runs(root, as_of)
        if as_of is not None and not is_time(as_of) and not runs[-1].succeeded:
            raise TableMissing(
                f"run {runs[-1].run_id} has published nothing: {_failure(runs[-1])!r}",
                "open another; `codeanatomy runs` lists them",
            )
        return cls.after(root, runs)

    @classmethod
    def after(cls, root: str, runs: Sequence[RecordedRun]) -> Snapshot:
        """What was published after these runs."""
        published = [run for run in runs if run.succeeded]
        if not published:
            raise TableMissing(
                f"nothing is published in {root}: no build has succeeded",
                "build it; `codeanatomy errors` tells what failed" if runs else "build it",
            )
        last = published[-1]
        return cls(
            root,
            last.run_id,
            last.finished_at,
            {pin.table_name: pin for pin in last.succeeded[0].output_pins},
            newest_rows([RecordedRun(run.run_id, run.succeeded) for run in published]),
        )

    def select_repositories(self, repo_id: str | None) -> dict[str, RunManifest]:
        """The repositories, or the one that is named."""
        return select_repositories(self.repositories, repo_id)

    def pin(self, name: str) -> OutputPin:
        """The version of a table that is published."""
        if name in RECORDS:
            # No run pins them: each adds to them when it has ended.
            return OutputPin(name, newest_version(self.root, name))
        if name not in self.pins:
            raise TableMissing(
                f"{name} is not published by run {self.run_id} of {self.root}",
                "build the lake again, without --until",
            )
        return self.pins[name]

    def rows(self, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Columns of the published rows of a table that meet a condition."""
        version = self.pin(name).version
        try:
            return light_table(self.root, name, columns, where, version=version)
        except (StorageFailure, TableMissing) as problem:
            raise self.explain(name, problem) from problem

    def has(self, name: str) -> bool:
        """Whether a table is there; what runs record is not before there was something to record."""
        try:
            self.pin(name)
        except TableMissing:
            return False
        return True

    def files(self, name: str) -> tuple[LoggedFile, ...]:
        """The data files of the published version of a table."""
        if name in RECORDS and not self.has(name):
            return ()
        version = self.pin(name).version
        try:
            return light_files(self.root, name, version)
        except (StorageFailure, TableMissing) as problem:
            raise self.explain(name, problem) from problem

    def explain(self, name: str, problem: CodeAnatomyError) -> CodeAnatomyError:
        """What is wrong with a table that cannot be read: its version is gone, or what was said of it."""
        # Here: most tables can be read.
        from codeanatomy.delta.read.readable import require_readable

        try:
            require_readable(self.root, name, self.pin(name).version)
        except VersionGone as gone:
            return VersionGone(
                f"run {self.run_id} cannot be read any more: {gone.message}",
                "open a newer run (`codeanatomy runs`), or build the lake again",
            )
        return problem


def recorded_runs(root: str, as_of: str | None = None) -> list[RecordedRun]:
    """The runs of a lake, in the order in which they ended: all, or those up to a run or a time."""
    rows: dict[str, list[RunManifest]] = {}
    for row in read_manifest(root):
        rows.setdefault(row.run_id, []).append(row)
    runs = [RecordedRun(name, tuple(found)) for name, found in rows.items()]
    runs.sort(key=lambda run: (run.finished_at, run.run_id))
    if not runs:
        from codeanatomy.lake.lease import read_lease

        writer = read_lease(root)
        if writer is not None:
            raise TableMissing(
                f"nothing is published in {root}; last written by {writer.holder}",
                "wait until it is built (`codeanatomy status`), or build it again",
            )
        raise TableMissing(f"a lake was never written at {root}", "name a lake that was built")
    if as_of is None:
        return runs
    return _until(runs, as_of) if is_time(as_of) else runs[: runs.index(find_run(runs, as_of)) + 1]


def find_run(runs: Sequence[RecordedRun], name: str) -> RecordedRun:
    """The run of this name, or the only one whose name begins like this; `latest` is the newest."""
    if name == LATEST and runs:
        return runs[-1]
    found = [run for run in runs if run.run_id == name] or [
        run for run in runs if name and run.run_id.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    what = f"run, {len(found):,} begin with" if found else "run"
    raise UnknownName(what, name, (run.run_id for run in (found or runs)[-NAMED:]))


def newest_rows(runs: Sequence[RecordedRun]) -> dict[str, RunManifest]:
    """What the last of these runs that was about a repository says of it, succeeded or not."""
    newest: dict[str, RunManifest] = {}
    for run in runs:
        if run.is_restore:
            newest.clear()
        newest |= {row.repo_id: row for row in run.rows}
    return {name: newest[name] for name in sorted(newest)}


def select_repositories(rows: dict[str, RunManifest], repo_id: str | None) -> dict[str, RunManifest]:
    """The rows of all repositories, or of the one that is named."""
    if repo_id is None:
        return rows
    if repo_id not in rows:
        raise UnknownName("repository", repo_id, rows)
    return {repo_id: rows[repo_id]}


def is_time(as_of: str) -> bool:
    """Whether it is meant as a time, and not as the name of a run."""
    return DATE.match(as_of) is not None


def parse_time(as_of: str) -> datetime:
    """The time that is meant."""
    try:
        given = datetime.fromisoformat(as_of)
    except ValueError as problem:
        raise UsageError(f"{as_of!r} is not a time", "write it like 2026-05-01T12:00Z") from problem
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


def _until(runs: Sequence[RecordedRun], as_of: str) -> list[RecordedRun]:
    time = parse_time(as_of)
    found = [run for run in runs if run.finished_at.replace(microsecond=0) <= time]
    if not any(run.succeeded for run in found):
        first = next((run for run in runs if run.succeeded), None)
        hint = f"the first was published at {first.finished_at:%Y-%m-%dT%H:%M:%SZ}" if first else "build it"
        raise TableMissing(f"nothing was published by {time.isoformat()}", hint)
    return found


def _failure(run: RecordedRun) -> str:
    return next((row.error for row in run.rows if row.error), run.rows[0].status)
