"""Open a lake as of one published run: every table at the version that the run pins. No JVM.

    lake = Snapshot.open("lake")                                 # the newest published run
    lake = Snapshot.open("lake", "20260501T12")                  # a run, by a prefix of its id
    lake = Snapshot.open("lake", "2026-05-01T14:00+02:00")       # the newest run published by that time
    lake.rows("cpg_nodes", ["node_id", "path"])
    lake.repositories["requests"].git_commit

A run pins all tables of the lake, also those it has not written, so one run is one state of all repositories.
Rows that are written while a reader is open are in versions that are not pinned yet.

Runs are ordered by their end, since a run that waited for another has started before it. A run without a
successful repository has published nothing and cannot be opened. A time without a zone is UTC, as are all
printed times; a date without a time is midnight. A run ends in a second: fractions are ignored. A restoring
run determines which repositories there are: those built only after the run that it restored are gone until
they are built again.

Tests: `tests/unit/lake/test_snapshot.py`, `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from codeanatomy.catalog.tables.meta import RECORDS as RECORD_TABLES
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files, light_table
from codeanatomy.delta.read.open_table import newest_version
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

# Tables with rows of all runs, whichever run is opened.
RECORDS = frozenset(table.name for table in RECORD_TABLES)
# Run ids begin with a date too, but without dashes.
DATE = re.compile(r"\d{4}-\d\d-\d\d")
# Number of runs listed in the error for an unknown run.
LISTED_RUNS = 5
# Name of the newest run.
LATEST = "latest"


class RecordedRun(Struct, frozen=True):
    """A run that has ended, with its manifest rows, one per repository."""

    run_id: str
    rows: tuple[RunManifest, ...]

    @property
    def started_at(self) -> datetime:
        """Return the start time."""
        return min(row.started_at for row in self.rows)

    @property
    def finished_at(self) -> datetime:
        """Return the end time."""
        return max(row.finished_at for row in self.rows)

    @property
    def succeeded(self) -> tuple[RunManifest, ...]:
        """Return the rows of successful repositories; if there are none, nothing was published."""
        return tuple(row for row in self.rows if row.status == "succeeded")

    @property
    def is_restore(self) -> bool:
        """Return whether the run restored another, so that only the repositories of its rows exist."""
        return any(row.mode == "restore" for row in self.succeeded)


class Snapshot(Struct, frozen=True):
    """One published state of a lake."""

    root: str
    run_id: str
    published_at: datetime
    # By table.
    pins: dict[str, OutputPin]
    # The newest manifest row of each repository.
    repositories: dict[str, RunManifest]

    @classmethod
    def open(cls, root: str, as_of: str | None = None) -> Snapshot:
        """Open the newest published run, the run with an id or prefix, or the newest one at a time."""
        runs = recorded_runs(root, as_of)
        last = runs[-1]
        if as_of is not None and not is_time(as_of) and not last.succeeded:
            failure = next((row.error for row in last.rows if row.error), last.rows[0].status)
            raise TableMissing(
                f"run {last.run_id} has published nothing: {failure!r}",
                "open another run; `codeanatomy runs` lists them",
            )
        return cls.after(root, runs)

    @classmethod
    def after(cls, root: str, runs: Sequence[RecordedRun]) -> Snapshot:
        """Return the published state after these runs."""
        published = [run for run in runs if run.succeeded]
        if not published:
            retry = "see `codeanatomy errors`, fix the failure and build again"
            message = f"nothing is published in {root}: no build has succeeded"
            raise TableMissing(message, retry if runs else "build the lake first")
        last = published[-1]
        return cls(
            root,
            last.run_id,
            last.finished_at,
            {pin.table_name: pin for pin in last.succeeded[0].output_pins},
            newest_rows([RecordedRun(run.run_id, run.succeeded) for run in published]),
        )

    def select_repositories(self, repo_id: str | None) -> dict[str, RunManifest]:
        """Return all repositories, or the one with an id."""
        return select_repositories(self.repositories, repo_id)

    def pin(self, name: str) -> OutputPin:
        """Return the published version of a table."""
        if name in RECORDS:
            # Not pinned, since each run appends to them after its end.
            return OutputPin(name, newest_version(self.root, name))
        if name not in self.pins:
            raise TableMissing(
                f"{name} is not published by run {self.run_id} of {self.root}",
                "build the lake again, without --until",
            )
        return self.pins[name]

    def rows(
        self, name: str, columns: Sequence[str], where: Mapping[str, Collection[str]] | None = None
    ) -> pa.Table:
        """Read columns of the published rows of a table, filtered by the values of columns."""
        version = self.pin(name).version
        try:
            return light_table(self.root, name, columns, where, version=version)
        except (StorageFailure, TableMissing) as problem:
            raise self.explain(name, problem) from problem

    def has(self, name: str) -> bool:
        """Return whether a table is published; tables of records exist only after their first row."""
        try:
            self.pin(name)
        except TableMissing:
            return False
        return True

    def files(self, name: str) -> tuple[LoggedFile, ...]:
        """Return the data files of the published version of a table."""
        if name in RECORDS and not self.has(name):
            return ()
        version = self.pin(name).version
        try:
            return light_files(self.root, name, version)
        except (StorageFailure, TableMissing) as problem:
            raise self.explain(name, problem) from problem

    def explain(self, name: str, problem: CodeAnatomyError) -> CodeAnatomyError:
        """Return VersionGone if that is why a table cannot be read, else `problem`."""
        # Imported here: most tables can be read.
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
    """Return the runs of a lake ordered by their end: all, or those up to a run or a time."""
    rows_by_run: dict[str, list[RunManifest]] = {}
    for row in read_manifest(root):
        rows_by_run.setdefault(row.run_id, []).append(row)
    runs = [RecordedRun(run_id, tuple(rows)) for run_id, rows in rows_by_run.items()]
    runs.sort(key=lambda run: (run.finished_at, run.run_id))
    if not runs:
        from codeanatomy.lake.lease import is_stale, read_lease

        writer = read_lease(root)
        if writer is not None and is_stale(writer, datetime.now(UTC)):
            raise TableMissing(
                f"nothing is published in {root}; its only run is dead: {writer.holder}", "build it again"
            )
        if writer is not None:
            raise TableMissing(
                f"nothing is published in {root}; being written by {writer.holder}",
                "wait until it is built: `codeanatomy status`",
            )
        raise TableMissing(f"a lake was never written at {root}", "check the path of the lake, or build it")
    if as_of is None:
        return runs
    return _until(runs, as_of) if is_time(as_of) else runs[: runs.index(find_run(runs, as_of)) + 1]


def find_run(runs: Sequence[RecordedRun], name: str) -> RecordedRun:
    """Return the run with this id, or the only run with this prefix; `latest` is the newest."""
    if name == LATEST and runs:
        return runs[-1]
    matches = [run for run in runs if run.run_id == name]
    matches = matches or [run for run in runs if name and run.run_id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    what = f"run, {len(matches):,} begin with" if matches else "run"
    raise UnknownName(what, name, (run.run_id for run in (matches or runs)[-LISTED_RUNS:]))


def newest_rows(runs: Sequence[RecordedRun]) -> dict[str, RunManifest]:
    """Return the newest manifest row of each repository, successful or not."""
    newest: dict[str, RunManifest] = {}
    for run in runs:
        if run.is_restore:
            newest.clear()
        newest |= {row.repo_id: row for row in run.rows}
    return {name: newest[name] for name in sorted(newest)}


def select_repositories(rows: dict[str, RunManifest], repo_id: str | None) -> dict[str, RunManifest]:
    """Return the rows of all repositories, or of the one with an id."""
    if repo_id is None:
        return rows
    if repo_id not in rows:
        raise UnknownName("repository", repo_id, rows)
    return {repo_id: rows[repo_id]}


def is_time(as_of: str) -> bool:
    """Return whether the text is a time rather than a run id."""
    return DATE.match(as_of) is not None


def parse_time(as_of: str) -> datetime:
    """Parse a time; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(as_of)
    except ValueError as problem:
        raise UsageError(f"{as_of!r} is not a time", "write it like 2026-05-01T12:00Z") from problem
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _until(runs: Sequence[RecordedRun], as_of: str) -> list[RecordedRun]:
    time = parse_time(as_of)
    ended = [run for run in runs if run.finished_at.replace(microsecond=0) <= time]
    if any(run.succeeded for run in ended):
        return ended
    hint = "build the lake first"
    if first := next((run for run in runs if run.succeeded), None):
        published = f"{first.finished_at:%Y-%m-%dT%H:%M:%SZ}"
        hint = f"choose a later time; the first run was published at {published}"
    raise TableMissing(f"nothing was published by {time.isoformat()}", hint)
