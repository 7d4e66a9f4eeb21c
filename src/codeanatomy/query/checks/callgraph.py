"""Who calls whom in the repositories of a lake, by qualified names.

    call_graphs("lake").calls["requests"]["requests.api.get"]     # ["requests.api.request"]

Read without a JVM. What a function calls through several sites, or by several ways of finding out, counts
once. Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy.lake.snapshot import Snapshot

RELATIONS = "relations_v1"
# Sorted callees by caller, sorted.
Calls: TypeAlias = dict[str, list[str]]


class CallGraphs(Struct, frozen=True):
    """Call graphs by repository, and the repositories whose newest build ended before the relate stage."""

    calls: dict[str, Calls]
    outdated: tuple[str, ...]


def call_graphs(root: str, repo_id: str | None = None, as_of: str | None = None) -> CallGraphs:
    """The call graph of each repository that was built."""
    lake = Snapshot.open(root, as_of)
    repositories = lake.chosen(repo_id)
    wanted = pc.field("relation_kind") == "CALL_GRAPH"
    if repo_id is not None:
        wanted &= pc.field("repo_id") == repo_id
    rows = lake.rows(RELATIONS, ["repo_id", "src_qname", "dst_qname"], wanted)
    found: dict[str, dict[str, set[str]]] = {name: {} for name in repositories}
    for repository, caller, callee in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        if repository in found:
            found[repository].setdefault(caller, set()).add(callee)
    outdated = [name for name, row in repositories.items() if "relate" not in row.plan_fingerprints]
    return CallGraphs({name: _sorted(calls) for name, calls in found.items()}, tuple(outdated))


def merged(graphs: Iterable[Calls]) -> Calls:
    """Several call graphs as one.

    >>> merged([{"a": ["x"]}, {"a": ["b"], "b": ["x"]}])
    {'a': ['b', 'x'], 'b': ['x']}
    """
    found: dict[str, set[str]] = {}
    for graph in graphs:
        for caller, callees in graph.items():
            found.setdefault(caller, set()).update(callees)
    return _sorted(found)


def _sorted(calls: dict[str, set[str]]) -> Calls:
    return {caller: sorted(calls[caller]) for caller in sorted(calls)}
