"""List what failed when the repositories of a lake were last built.

    result = failures("lake", limit=20)
    result.rows[0]     # Failure("requests", "requests/api.py", 12, "ast_files_v1", "SyntaxError", ...)
    result.total       # 31: more than the limit

A run that finds a repository unchanged does not read it again: its failures are those of the run that did.

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
    # The file, or the source of a repository that could not be built.
    path: str
    # Counted from 1; None if unknown.
    line: int | None
    extractor: str
    error_type: str
    message: str

    @property
    def place(self) -> str:
        """The location as `path:line`."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Failures(Struct, frozen=True):
    """The requested failures, and their total."""

    rows: tuple[Failure, ...]
    total: int
    # Id of the last run of each repository.
    runs: dict[str, str]


def failures(
    root: str, repo_id: str | None = None, limit: int | None = None, as_of: str | None = None
) -> Failures:
    """Return the failures of the published build of each repository, and of failed builds after it.

    Repositories whose newest build failed come first; then by repository, path and extractor.
    """
    runs = recorded_runs(root, as_of)
    newest = select_repositories(newest_rows(runs), repo_id)
    broken = [_build_failure(row) for row in newest.values() if row.status != "succeeded"]
    artifacts = _error_artifacts(root, runs, newest)
    wanted = len(artifacts) if limit is None else max(limit - len(broken), 0)
    shown = map(_file_failure, artifacts.slice(0, wanted).to_pylist())
    run_ids = {name: row.run_id for name, row in newest.items()}
    return Failures((*broken, *shown)[:limit], len(broken) + len(artifacts), run_ids)


def _build_failure(row: RunManifest) -> Failure:
    return Failure(row.repo_id, row.repo_root or "", None, "build", row.status, row.error or "")


def _error_artifacts(root: str, runs: Sequence[RecordedRun], wanted: Collection[str]) -> pa.Table:
    """Return the errors of extractors in the published builds of the repositories, in order."""
    empty = arrow_schema(catalog.table(ERRORS)).empty_table()
    if not any(run.succeeded for run in runs):
        return empty
    lake = Snapshot.after(root, runs)
    built = [lake.repositories[name] for name in wanted if name in lake.repositories]
    failed = {row.repo_id: str(row.extract_run_id) for row in built if sum(row.error_counts.values())}
    if not failed:
        return empty
    columns = [*ORDER, "line", "error_type", "message", "run_id"]
    rows = lake.rows(ERRORS, columns, {"run_id": {*failed.values()}, "repo_id": failed.keys()})
    conditions = (
        (pc.field("run_id") == run_id) & (pc.field("repo_id") == repo_id)
        for repo_id, run_id in failed.items()
    )
    own = rows.filter(reduce(or_, conditions)).drop_columns(["run_id"])
    return own.sort_by([(name, "ascending") for name in ORDER])


def _file_failure(row: dict[str, Any]) -> Failure:
    return Failure(
        row["repo_id"],
        row["path"],
        row["line"],
        row["extractor_name"],
        row["error_type"],
        row["message"],
    )
