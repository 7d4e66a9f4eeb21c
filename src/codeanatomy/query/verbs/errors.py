"""List what failed when the repositories of the lake were last built (`errors`).

    errors(reader, repo_id="requests")
    # ast_files_v1  requests/api.py:12  SyntaxError  '(' was never closed

The kind of a row is the extractor that failed on the file, its method the class of the error. For the newest
snapshot, builds that failed after it are listed first. `query.status.failures` reads the failures.

Tests: `tests/unit/query/test_verb_stats.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.verbs.result import VerbResult, rows_result

if TYPE_CHECKING:
    from codeanatomy.query.status.failures import Failure

COLUMNS = ("symbol", "kind", "path", "line", "confidence", "method", "detail", "repo_id")


def errors(reader: Reader, *, repo_id: str | None = None) -> VerbResult:
    """List the failures of all repositories of this snapshot, or of one."""
    # Imported here because PyArrow takes as long to import as most answers take.
    from codeanatomy.query.status.failures import failures

    lake = reader.snapshot
    published = [run.run_id for run in recorded_runs(lake.root) if run.succeeded]
    as_of = None if lake.run_id == published[-1] else lake.run_id
    return rows_result(COLUMNS, map(failure_row, failures(lake.root, repo_id, as_of=as_of).rows))


def failure_row(failure: Failure) -> dict[str, Any]:
    """Convert a failure to a row of an answer."""
    return {
        "symbol": None,
        "kind": failure.extractor,
        "path": failure.path,
        "line": failure.line,
        "confidence": None,
        "method": failure.error_type,
        "detail": failure.message,
        "repo_id": failure.repo_id,
    }
