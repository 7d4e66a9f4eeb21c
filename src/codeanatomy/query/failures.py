"""What failed when the repositories of a lake were last built.

    answer = failures("lake", limit=20)
    answer.rows[0]     # Failure("requests", "requests/api.py", 12, "ast_files_v1", "SyntaxError", ...)
    answer.total       # 31: more than were asked for

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy.query.runs import newest_runs
from codeanatomy.storage.light import light_table

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


def failures(lake: str, repo_id: str | None = None, limit: int | None = None) -> Failures:
    """The failures of the newest run of each repository, by repository, path and extractor."""
    columns = ["repo_root", "error", "error_counts"]
    newest = list(newest_runs(lake, columns, repo_id).values())
    runs = {row["repo_id"]: row["run_id"] for row in newest}
    broken = [
        Failure(row["repo_id"], row["repo_root"] or "", None, "build", "failed", row["error"] or "")
        for row in newest
        if row["status"] != "succeeded"
    ]
    built = [row for row in newest if row["status"] == "succeeded" and sum(_counts(row).values())]
    found = _artifacts(lake, built)
    wanted = len(found) if limit is None else max(limit - len(broken), 0)
    shown = map(_failure, found.slice(0, wanted).to_pylist())
    return Failures((*broken, *shown)[:limit], len(broken) + len(found), runs)


def _counts(row: dict[str, Any]) -> dict[str, int]:
    return dict(row["error_counts"] or ())


def _artifacts(lake: str, built: list[dict[str, Any]]) -> pa.Table:
    """The failures of these runs and repositories, in order."""
    nothing = pc.scalar(False)
    wanted = reduce(or_, (_of_run(row) for row in built), nothing)
    rows = light_table(lake, "extract_error_artifacts", [*ORDER, "line", "error_type", "message"], wanted)
    return rows.sort_by([(name, "ascending") for name in ORDER])


def _of_run(row: dict[str, Any]) -> pc.Expression:
    return (pc.field("run_id") == row["run_id"]) & (pc.field("repo_id") == row["repo_id"])


def _failure(row: dict[str, Any]) -> Failure:
    what = (row["extractor_name"], row["error_type"], row["message"])
    return Failure(row["repo_id"], row["path"], row["line"], *what)
