"""`errors`: what failed when the repositories of the lake were last built.

    errors(reader, repo_id="requests")
    # ast_files_v1  requests/api.py:12  SyntaxError  '(' was never closed

The kind of a row is the extractor that failed on the file, its method the class of the error. Of the newest
state, builds that failed after it are told too, first. `query.status.failures` reads them. Tests:
`tests/unit/query/test_verb_stats.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.verbs.result import Found, held

if TYPE_CHECKING:
    from codeanatomy.query.status.failures import Failure

COLUMNS = ("symbol", "kind", "path", "line", "confidence", "method", "detail", "repo_id")


def errors(reader: Reader, *, repo_id: str | None = None) -> Found:
    """What failed in the repositories of this state, or in one."""
    # It needs PyArrow, which takes as long to import as most answers.
    from codeanatomy.query.status.failures import failures

    lake = reader.snapshot
    published = [run.run_id for run in recorded_runs(lake.root) if run.succeeded]
    as_of = None if lake.run_id == published[-1] else lake.run_id
    return held(COLUMNS, map(as_row, failures(lake.root, repo_id, as_of=as_of).rows))


def as_row(failure: Failure) -> dict[str, Any]:
    """A failure as a row of an answer."""
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
