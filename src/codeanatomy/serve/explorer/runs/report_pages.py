"""Show the reports on whole repositories: entry points, what is unused, in a cycle, or unresolved.

    GET /reports/unused                        rows of all repositories, with the text of their lines
    GET /reports/cycles?repo=shop&limit=1000   rows of one

A report is the answer of a verb without a symbol. Tests: `tests/unit/serve/test_report_pages.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from starlette.responses import Response

from codeanatomy.errors import UnknownName
from codeanatomy.query.answers import Answer, place
from codeanatomy.query.lake import Lake
from codeanatomy.query.pictures.drawing import CERTAIN
from codeanatomy.serve.explorer.source_names import kind_label
from codeanatomy.serve.explorer.visit import Page, Visit, percent

ENTRIES = "entry-points"
# Titles of the reports by verb, in the order of the first page.
REPORTS = {
    ENTRIES: "Entry points",
    "unused": "Unused definitions",
    "cycles": "Import cycles",
    "unresolved": "Unresolved names and calls",
}
# Columns that are shown as a note.
NOTED = ("entry", "name", "framework", "target", "relation", "method", "detail")
LISTED = 200
MAX_LISTED = 10_000


def report_page(visit: Visit) -> Response:
    """List the rows of a report."""
    verb, repo_id = str(visit.request.path_params["verb"]), visit.text("repo") or None
    if verb not in REPORTS:
        raise UnknownName("report", verb, REPORTS)
    answer = read_report(visit.lake, verb, repo_id, visit.number("limit", LISTED, 1, MAX_LISTED))
    return visit.page(
        "report.html",
        verb=verb,
        reports=REPORTS,
        answer=answer,
        rows=[_linked(visit, row) for row in answer.rows],
        repo_id=repo_id,
        repositories=sorted(visit.lake.snapshot.repositories),
        longer=min(answer.total, MAX_LISTED),
    )


@lru_cache(maxsize=8)
def read_report(lake: Lake, verb: str, repo_id: str | None, limit: int) -> Answer:
    """Return the answer of a verb for a snapshot."""
    if verb == ENTRIES:
        return lake.ask("find", entry_points="root", repo_id=repo_id, limit=limit)
    return lake.ask(verb, repo_id=repo_id, limit=limit)


def _linked(visit: Visit, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an answer with its links; what is unresolved is inside of a symbol, and none itself."""
    repo_id, path, line = row["repo_id"], row["path"], row["line"]
    symbol = row["inside"] if "inside" in row else row["symbol"]
    return {
        "symbol": symbol,
        "text": row["symbol"] if "inside" in row else None,
        "page": visit.symbol_link(repo_id, symbol) if symbol else None,
        "kind": kind_label(row["kind"], row.get("subkind")),
        "place": place(path, line),
        "link": visit.file_link(repo_id, path, line) if path else None,
        "note": ", ".join(str(row[name]) for name in NOTED if row.get(name)),
        "guess": percent(row["confidence"]) if 0 < (row["confidence"] or 0) < CERTAIN else None,
        "method": row["method"],
        "source": row["source"],
    }


PAGES: tuple[tuple[str, Page], ...] = (("/reports/{verb}", report_page),)
FORMS: tuple[tuple[str, Page], ...] = ()
