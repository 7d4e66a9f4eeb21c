"""Count files, failures, nodes, edges and calls of each repository (`stats`).

    stats(reader, repo_id="requests")
    # read              files        36
    # ast_files_v1      failures      1
    # FUNCTION          nodes       619
    # CALL_GRAPH        edges     2,310
    # one target        calls     1,480   81.2 % of 1,823 call sites
    # unknown_receiver  unresolved  510   CALLS 170, REFERS_TO 340

Groups come in this order, the largest count first. A call site has several targets if they are alternatives,
of which one runs. External functions are targets too.

Tests: `tests/unit/query/test_verb_stats.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.query.engines.statements import Query, Reader, Row, edges, nodes, of_repository
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.reachability import CALLS

COLUMNS = ("symbol", "kind", "amount", "detail", "path", "line", "confidence", "method", "repo_id")
GROUPS = ("files", "failures", "nodes", "edges", "calls", "unresolved")


def stats(reader: Reader, *, repo_id: str | None = None) -> VerbResult:
    """Count the contents of each repository, or of one."""
    repositories = reader.snapshot.select_repositories(repo_id)
    failures = [
        (name, extractor, count)
        for name, row in repositories.items()
        for extractor, count in row.error_counts.items()
    ]
    counts = {
        "files": _files(reader, repo_id),
        "failures": failures,
        "nodes": _by_kind(reader, "cpg_nodes", "node_kind", repo_id),
        "edges": _by_kind(reader, "cpg_edges", "edge_kind", repo_id),
        "calls": _calls(reader, repo_id),
        "unresolved": _unresolved(reader, repo_id),
    }
    rows = [_row(group, row) for group in GROUPS for row in counts[group]]
    rows.sort(key=lambda row: (row["repo_id"], GROUPS.index(row["kind"]), -row["amount"], row["symbol"]))
    return rows_result(COLUMNS, rows)


def _row(group: str, row: Sequence[Any]) -> dict[str, Any]:
    repo_id, symbol, amount, *detail = row
    return {
        "symbol": symbol,
        "kind": group,
        "amount": amount,
        "detail": detail[0] if detail else None,
        "repo_id": repo_id,
    }


def _files(reader: Reader, repo_id: str | None) -> list[Row]:
    """Count files by state: `read`, or the reason for skipping."""
    return reader.rows(
        Query(
            "SELECT f.repo_id, coalesce(f.skipped_reason, 'read'), count(*) FROM f GROUP BY 1, 2",
            {"f": of_repository("repo_files_v1", repo_id)},
        )
    )


def _by_kind(reader: Reader, table: str, kind: str, repo_id: str | None) -> list[Row]:
    rows = {"t": of_repository(table, repo_id)}
    return reader.rows(Query(f"SELECT t.repo_id, t.{kind}, count(*) FROM t GROUP BY 1, 2", rows))


def count_call_sites(reader: Reader, repo_id: str | None = None) -> list[tuple[str, int, int, int]]:
    """Return by repository the number of call sites, of those without a target, and with several."""
    query = Query(
        "SELECT c.repo_id, count(*), sum(CASE WHEN t.src_node_id IS NULL THEN 1 ELSE 0 END), sum(t.several)"
        " FROM c LEFT JOIN (SELECT e.src_node_id,"
        " max(CASE WHEN e.ambiguity_group_id IS NULL THEN 0 ELSE 1 END) AS several FROM e GROUP BY 1) AS t"
        " ON t.src_node_id = c.node_id GROUP BY 1",
        {"c": nodes(("CALLSITE",), repo_id), "e": edges(CALLS, repo_id)},
    )
    return [(repo, sites, int(none), int(several or 0)) for repo, sites, none, several in reader.rows(query)]


def _calls(reader: Reader, repo_id: str | None) -> list[tuple[Any, ...]]:
    """Count call sites by their number of targets: one, several, none."""
    rows: list[tuple[Any, ...]] = []
    for repo, sites, without, ambiguous in count_call_sites(reader, repo_id):
        parts = {
            "one target": sites - without - ambiguous,
            "several targets": ambiguous,
            "no target": without,
        }
        for name, count in parts.items():
            rows.append((repo, name, count, f"{100 * count / sites:.1f} % of {sites:,} call sites"))
    return rows


def _unresolved(reader: Reader, repo_id: str | None) -> Iterable[tuple[Any, ...]]:
    """Count unresolved relations by reason, with the kinds of relations in the detail."""
    query = Query(
        "SELECT r.repo_id, r.reason, r.relation_kind, count(*) FROM r WHERE r.dst_id IS NULL"
        " GROUP BY 1, 2, 3",
        {"r": of_repository("relations_v1", repo_id)},
        order=("repo_id", "reason", "relation_kind"),
    )
    relations: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for repo, reason, relation, count in reader.rows(query):
        relations.setdefault((repo, reason), []).append((relation, count))
    for (repo, reason), parts in relations.items():
        detail = ", ".join(f"{relation} {count:,}" for relation, count in parts)
        yield repo, reason, sum(count for _, count in parts), detail
