"""The manifest: the last commit of a run, one row per repository, which says what a reader opens.

A repository that failed has a row too, with the reason; its older snapshot stays the published one.

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from codeanatomy.extract.files import failures_by_extractor
from codeanatomy.run.inputs import SMALL, input_rows
from codeanatomy.run.repositories import Repository, git_commit
from codeanatomy.run.state import Run
from codeanatomy.storage.commit import append
from codeanatomy.storage.contract import spark_schema
from codeanatomy.storage.stamps import Commit

TABLE = "run_manifest"


def publish(run: Run) -> None:
    """Append the run's rows; afterwards readers see what it has written."""
    _recount(run)
    finished = datetime.now(UTC)
    rows = [_row(run, repository, finished) for repository in run.listed.repositories]
    frame = run.store.spark.createDataFrame(rows, spark_schema(run.store.table(TABLE)))
    append(run.store, TABLE, frame, Commit(run.run_id), file_bytes=SMALL)


def _recount(run: Run) -> None:
    """Count by repository what was not counted when it was made."""
    for name in sorted(run.recount):
        rows = input_rows(run, run.store, name)
        found = {row["repo_id"]: row["count"] for row in rows.groupBy("repo_id").count().collect()}
        for repo_id in run.listings:
            run.counts.setdefault(repo_id, Counter())[name] = found.get(repo_id, 0)


def _row(run: Run, repository: Repository, finished: datetime) -> dict[str, Any]:
    repo_id = repository.repo_id
    error = run.failed.get(repo_id)
    counts = run.counts.get(repo_id, Counter())
    pins = [
        {
            "table_name": name,
            "version": done.version,
            # Rows of a table that was there before are not counted again.
            "rows": done.rows if done.created else None,
            "min_reader_version": None,
            "min_writer_version": None,
            "features": None,
        }
        for name, done in sorted(run.committed.items())
    ]
    return {
        "run_id": run.run_id,
        "repo_id": repo_id,
        "repo_root": str(repository.path),
        "git_commit": git_commit(run.listings[repo_id]) if repo_id in run.listings else None,
        "status": "failed" if error else "succeeded",
        "mode": "full",
        "started_at": run.started,
        "finished_at": finished,
        "error": error,
        "profile_hash": run.settings.runtime.identity,
        "settings_hash": None,
        "catalog_hash": None,
        "witness_versions": run.witness_versions,
        "plan_fingerprints": {},
        "input_pins": [],
        "output_pins": [] if error else pins,
        "row_counts": {name: counts[name] for name in run.committed if name in counts},
        "change_windows": [],
        "artifact_ids": {},
        "error_counts": failures_by_extractor(counts),
        "step_ms": {step: round(1000 * seconds) for step, seconds in run.seconds.items()},
        "trace_id": None,
    }
