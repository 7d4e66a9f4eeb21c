"""Show the first page, and search.

    GET /                       repositories with their freshness and size
    GET /search?q=session       matches of a name
    GET /api/suggest?q=sess     the same as JSON, while a visitor types

Tests: `tests/unit/serve/test_pages.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from starlette.responses import Response

from codeanatomy.query.answers import place
from codeanatomy.query.ask import coverage_of, freshness_of
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, nodes, of_repository
from codeanatomy.query.status.run_reports import runs
from codeanatomy.query.verbs.stats import count_call_sites
from codeanatomy.serve.explorer.runs.report_pages import REPORTS
from codeanatomy.serve.explorer.search import Suggestion
from codeanatomy.serve.explorer.source_names import kind_label
from codeanatomy.serve.explorer.visit import Page, Visit

SUGGESTIONS = 12
RESULTS = 100
# Runs and repositories on the first page.
RECENT_RUNS = 5
MAX_REPOSITORIES = 200


def home_page(visit: Visit) -> Response:
    """List the repositories of the lake and its last runs."""
    everything = visit.lake.snapshot.repositories
    manifests = list(everything.values())[:MAX_REPOSITORIES]
    sizes = repository_sizes(visit.lake.reader)
    repositories = [
        {
            "repo_id": row.repo_id,
            "fresh": fresh,
            "coverage": coverage,
            "nodes": row.row_counts.get("cpg_nodes"),
            "edges": row.row_counts.get("cpg_edges"),
            "sizes": sizes.get(row.repo_id, {}),
        }
        for row, fresh, coverage in zip(
            manifests,
            freshness_of(visit.lake.reader, manifests),
            coverage_of(visit.lake.reader, manifests),
            strict=True,
        )
    ]
    recent = runs(visit.lake.snapshot.root, RECENT_RUNS)
    more = len(everything) - len(repositories)
    return visit.page("home.html", repositories=repositories, more=more, runs=recent, reports=REPORTS)


@lru_cache(maxsize=4)
def repository_sizes(reader: LightReader) -> dict[str, dict[str, Any]]:
    """Return by repository its bytes of source, classes, functions, and the share of calls with a target."""
    sizes: dict[str, dict[str, Any]] = {}
    blobs = Query(
        "SELECT b.repo_id, sum(b.size_bytes) FROM b GROUP BY 1",
        {"b": of_repository("repo_file_blobs_v1", None)},
    )
    for repo_id, total in reader.rows(blobs):
        sizes[repo_id] = {"bytes": int(total)}
    if not reader.snapshot.has("cpg_nodes"):
        return sizes
    definitions = Query(
        "SELECT n.repo_id, n.node_kind, count(*) FROM n GROUP BY 1, 2", {"n": nodes(("CLASS", "FUNCTION"))}
    )
    for repo_id, kind, count in reader.rows(definitions):
        sizes.setdefault(repo_id, {})[kind] = count
    for repo_id, sites, without, _ in count_call_sites(reader):
        sizes.setdefault(repo_id, {})["resolved"] = (sites - without) / sites if sites else None
    return sizes


def search_page(visit: Visit) -> Response:
    """List the matches of a name."""
    text = visit.text("q")
    rows = _suggestions(visit, RESULTS)
    return visit.page("search.html", text=text, rows=[_linked(visit, row) for row in rows], limit=RESULTS)


def suggest(visit: Visit) -> Response:
    """Return the best matches of a name as JSON."""
    return visit.json({"rows": [_linked(visit, row) for row in _suggestions(visit, SUGGESTIONS)]})


def _suggestions(visit: Visit, limit: int) -> list[Suggestion]:
    index = visit.lakes.search_index(visit.lake)
    return index.suggest(visit.text("q"), limit, visit.text("repo") or None)


def _linked(visit: Visit, row: Suggestion) -> dict[str, str | int | None]:
    """Return a match as a row with its address."""
    is_file = row.kind == "FILE"
    link = visit.file_link(row.repo_id, row.symbol) if is_file else visit.symbol_link(row.repo_id, row.symbol)
    return {
        "kind": kind_label(row.kind, row.subkind),
        "name": row.name,
        "symbol": row.symbol,
        "place": place(row.path, None if is_file else row.line),
        "repo_id": row.repo_id,
        "link": link,
    }


PAGES: tuple[tuple[str, Page], ...] = (
    ("/", home_page),
    ("/search", search_page),
    ("/api/suggest", suggest),
)
FORMS: tuple[tuple[str, Page], ...] = ()
