"""What failed when the repositories of a lake were last built.

    answer = failures("lake", limit=20)
    answer.rows[0]     # Failure("requests", "requests/api.py:12", "ast_files_v1", "SyntaxError", ...)
    answer.total       # 31: more than were asked for

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy.storage.light import light_dataset


class Failure(Struct, frozen=True):
    """An extractor that failed on a file, or a repository that could not be built."""

    repo_id: str
    # The file, and the line if one is known.
    place: str
    extractor: str
    error_type: str
    message: str


class Failures(Struct, frozen=True):
    """The failures that were asked for, of so many."""

    rows: tuple[Failure, ...]
    total: int
    # The run each repository was last built by.
    runs: dict[str, str]


def failures(lake: str, repo_id: str | None = None, limit: int | None = None) -> Failures:
    """The failures of the newest run of each repository, by repository, path and extractor."""
    newest = _newest_runs(lake, repo_id)
    runs = {row["repo_id"]: row["run_id"] for row in newest}
    broken = [
        Failure(row["repo_id"], row["repo_root"] or row["repo_id"], "build", "failed", row["error"] or "")
        for row in newest
        if row["status"] != "succeeded"
    ]
    built = [row for row in newest if row["status"] == "succeeded" and sum(_counts(row).values())]
    found = _artifacts(lake, built) if built else []
    wanted = limit if limit is None else max(limit - len(broken), 0)
    return Failures((*broken, *map(_failure, found[:wanted]))[:limit], len(broken) + len(found), runs)


def _newest_runs(lake: str, repo_id: str | None) -> list[dict[str, Any]]:
    columns = ["repo_id", "run_id", "repo_root", "status", "started_at", "error", "error_counts"]
    wanted = None if repo_id is None else pc.field("repo_id") == repo_id
    rows = light_dataset(lake, "run_manifest").to_table(columns=columns, filter=wanted).to_pylist()
    rows.sort(key=lambda row: (row["started_at"], row["run_id"]))
    newest = {row["repo_id"]: row for row in rows}
    return [newest[name] for name in sorted(newest)]


def _counts(row: dict[str, Any]) -> dict[str, int]:
    return dict(row["error_counts"] or ())


def _artifacts(lake: str, built: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pairs = {(row["run_id"], row["repo_id"]) for row in built}
    runs = pa.array(sorted({run_id for run_id, _ in pairs}))
    rows = light_dataset(lake, "extract_error_artifacts").to_table(filter=pc.field("run_id").isin(runs))
    order = [(name, "ascending") for name in ("repo_id", "path", "extractor_name", "error_index")]
    return [row for row in rows.sort_by(order).to_pylist() if (row["run_id"], row["repo_id"]) in pairs]


def _failure(row: dict[str, Any]) -> Failure:
    place = row["path"] if row["line"] is None else f"{row['path']}:{row['line']}"
    return Failure(row["repo_id"], place, row["extractor_name"], row["error_type"], row["message"])
