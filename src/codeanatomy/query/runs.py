"""The newest runs of the repositories of a lake, by its manifest.

    newest_runs("lake", ["status", "error"])     # a row for each repository, by name

Read without a JVM. Tests: `tests/test_build.py`, `tests/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeanatomy.errors import UnknownName
from codeanatomy.storage.light import light_table


def newest_runs(
    lake: str, columns: Sequence[str], repo_id: str | None = None, status: str | None = None
) -> dict[str, dict[str, Any]]:
    """The newest run of each repository, or of one, with these columns; of any status, or of one."""
    needed = dict.fromkeys(("repo_id", "run_id", "started_at", "status", *columns))
    rows = light_table(lake, "run_manifest", list(needed)).to_pylist()
    rows.sort(key=lambda row: (row["started_at"], row["run_id"]))
    newest = {row["repo_id"]: row for row in rows if status in (None, row["status"])}
    if repo_id is not None and repo_id not in newest:
        raise UnknownName("repository", repo_id, sorted(newest))
    return {name: newest[name] for name in sorted(newest) if repo_id in (None, name)}
