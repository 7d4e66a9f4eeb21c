"""What failed when the repositories of a lake were last built.

    answer = failures("lake", limit=20)
    answer.rows[0]     # Failure("requests", "requests/api.py", 12, "ast_files_v1", "SyntaxError", ...)
    answer.total       # 31: more than were asked for

A run that finds a repository unchanged does not read it again: what failed is told by the run that did.
Tests: `tests/spark/test_build.py`, `tests/unit/lake/test_snapshot.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import RecordedRun, Snapshot, newest_rows, recorded_runs, select_repositories

ERRORS = "extract_error_artifacts"
ORDER = ("repo_id", "path", "extractor_name", "error_index")


class Failure(Struct, frozen=True):
    """An extractor that failed on a file, or a repository that could not be built."""

    repo_id: str
    # The file, or what was to be built.
    path: str
    # Counted from 1; none if it is not known.
    line: int | None
    extractor: str
    error_type: str
    message: str

    @property
    def place(self) -> str:
        """As an editor opens it."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Failures(Struct, frozen=True):
    """The failures that were asked for, of so many."""

    rows: tuple[Failure, ...]
    total: int
    # The run each repository was last built by.
    runs: dict[str, str]


def failures(
    root: str, repo_id: str | None = None, limit: int | None = None, as_of: str | None = None
) -> Failures:
    """The failures of the published rows of each repository, and of builds that came after them.

    First the repositories whose newest build has failed; then by repository, path and extractor.
    """
    runs = recorded_runs(root, as_of)
    newest = select_repositories(newest_rows(runs), repo_id)
    broken = [_unbuilt(row) for row in newest.values() if row.status != "succeeded"]
    found = _artifacts(root, runs, newest)
    wanted = len(found) if limit is None else max(limit - len(broken), 0)
    shown = map(_failure, found.slice(0, wanted).to_pylist())
    names = {name: row.run_id for name, row in newest.items()}
    return Failures((*broken, *shown)[:limit], len(broken) + len(found), names)


def _unbuilt(row: RunManifest) -> Failure:
    return Failure(row.repo_id, row.repo_root or "", None, "build", row.status, row.error or "")


def _artifacts(root: str, runs: Sequence[RecordedRun], wanted: Collection[str]) -> pa.Table:
    """What failed in these repositories when they were last built, in order."""
    nothing = arrow_schema(catalog.table(ERRORS)).empty_table()
    if not any(run.succeeded for run in runs):
        return nothing
    lake = Snapshot.after(root, runs)
    built = [lake.repositories[name] for name in wanted if name in lake.repositories]
    of_runs = [_of_run(row) for row in built if sum(row.error_counts.values())]
    if not of_runs:
        return nothing
    columns = [*ORDER, "line", "error_type", "message"]
    rows = lake.rows(ERRORS, columns, reduce(or_, of_runs))
    return rows.sort_by([(name, "ascending") for name in ORDER])


def _of_run(row: RunManifest) -> pc.Expression:
    return (pc.field("run_id") == row.extract_run_id) & (pc.field("repo_id") == row.repo_id)


def _failure(row: dict[str, Any]) -> Failure:
    what = (row["extractor_name"], row["error_type"], row["message"])
    return Failure(row["repo_id"], row["path"], row["line"], *what)
