"""Read the call graphs of the repositories of a lake, by qualified names, without a JVM.

    call_graphs("lake").calls["requests"]["requests.api.get"]     # ["requests.api.request"]

A callee that a function calls at several sites, or that was resolved by several methods, is listed once.

Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from codeanatomy.lake.snapshot import Snapshot

RELATIONS = "relations_v1"
# Sorted callees by caller, callers sorted.
Calls: TypeAlias = dict[str, list[str]]


class RepositoryCallGraphs(Struct, frozen=True):
    """Call graphs by repository, and the repositories whose newest build ended before the relate stage."""

    calls: dict[str, Calls]
    outdated: tuple[str, ...]


def call_graphs(root: str, repo_id: str | None = None, as_of: str | None = None) -> RepositoryCallGraphs:
    """Read the call graph of each repository, or of one."""
    lake = Snapshot.open(root, as_of)
    repositories = lake.select_repositories(repo_id)
    wanted = {"relation_kind": ["CALL_GRAPH"], **({} if repo_id is None else {"repo_id": [repo_id]})}
    columns = ["repo_id", "src_qname", "dst_qname", "resolution_method"]
    rows = lake.rows(RELATIONS, columns, wanted)
    graphs: dict[str, dict[str, set[str]]] = {name: {} for name in repositories}
    for repository, caller, callee, method in zip(*(each.to_pylist() for each in rows.columns), strict=True):
        # A wrapper runs between the two.
        if repository in graphs and method != "forwarded":
            graphs[repository].setdefault(caller, set()).add(callee)
    outdated = [name for name, row in repositories.items() if "relate" not in row.plan_fingerprints]
    return RepositoryCallGraphs({name: _sorted(calls) for name, calls in graphs.items()}, tuple(outdated))


def merge_call_graphs(graphs: Iterable[Calls]) -> Calls:
    """Merge several call graphs into one.

    >>> merge_call_graphs([{"a": ["x"]}, {"a": ["b"], "b": ["x"]}])
    {'a': ['b', 'x'], 'b': ['x']}
    """
    merged: dict[str, set[str]] = {}
    for graph in graphs:
        for caller, callees in graph.items():
            merged.setdefault(caller, set()).update(callees)
    return _sorted(merged)


def _sorted(calls: dict[str, set[str]]) -> Calls:
    return {caller: sorted(calls[caller]) for caller in sorted(calls)}
