"""Who calls whom in the repositories of a lake, by qualified names.

    call_graphs("lake")["requests"]["requests.api.get"]     # ["requests.api.request"]

Read without a JVM. What a function calls through several sites, or by several ways of finding out, counts
once. Tests: `tests/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow.compute as pc

from codeanatomy.errors import UnknownName
from codeanatomy.storage.light import light_table

# Sorted callees by caller, sorted.
Calls: TypeAlias = dict[str, list[str]]


def call_graphs(lake: str, repo_id: str | None = None) -> dict[str, Calls]:
    """The call graph of each repository that was built."""
    runs = light_table(lake, "run_manifest", ["repo_id", "status"]).to_pylist()
    built = sorted({row["repo_id"] for row in runs if row["status"] == "succeeded"})
    if repo_id is not None and repo_id not in built:
        raise UnknownName("repository", repo_id, built)
    wanted = pc.field("relation_kind") == "CALL_GRAPH"
    if repo_id is not None:
        wanted &= pc.field("repo_id") == repo_id
    rows = light_table(lake, "relations_v1", ["repo_id", "src_qname", "dst_qname"], wanted)
    found: dict[str, dict[str, set[str]]] = {name: {} for name in built if repo_id in (None, name)}
    for repository, caller, callee in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        found.setdefault(repository, {}).setdefault(caller, set()).add(callee)
    return {name: _sorted(calls) for name, calls in found.items()}


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
