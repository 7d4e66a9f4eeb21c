"""Find modules that import, or functions that call, each other in a cycle (`cycles`).

    cycles(reader)                  # by imports
    # 1  3  shop.plan   MODULE  shop/plan.py:3   shop.truck  IMPORTS_MODULE  module level
    # 1  3  shop.truck  MODULE  shop/truck.py:5  shop.plan   IMPORTS_NAME    inside a function
    cycles(reader, runtime=True)    # of imports that run when a module is imported
    cycles(reader, by="calls")

A group is a strongly connected component: each member reaches every other. `amount` is its number of members;
its rows are one shortest cycle, in order. A row has the location of the import or call that leads to
`target`.

An import runs when its module is imported or, inside of a function, when that is called, or never, below `if
TYPE_CHECKING:`; `method` distinguishes them. All of them connect modules, but if there is a cycle of imports
at module level only, that one is shown: it is what fails with a partially initialized module. With `runtime`
other imports are left out from the start, so that groups and `amount` are those of module level. An import
targets the module it names: `from pkg import mod` targets `pkg.mod`, not `pkg`. A function that only calls
itself is not a group.

Tests: `tests/unit/query/test_verb_cycles.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from codeanatomy.errors import UsageError
from codeanatomy.query.engines.statements import Query, Reader, edges, nodes
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.components import components, shortest_cycle
from codeanatomy.query.walks.imports import AT_ONCE, LATER, NEVER, Link, module_imports
from codeanatomy.query.walks.reachability import CALL_GRAPH

COLUMNS = (
    "group_id",
    "amount",
    "symbol",
    "kind",
    "path",
    "line",
    "source",
    "target",
    "relation",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)


def cycles(
    reader: Reader,
    *,
    by: Literal["imports", "calls"] = "imports",
    runtime: bool = False,
    repo_id: str | None = None,
) -> VerbResult:
    """List cycles of imports or of calls, the largest group first; `runtime` only imports at module level."""
    if by not in ("imports", "calls"):
        raise UsageError(f"--by must be imports or calls, got {by!r}", "use --by imports or --by calls")
    if runtime and by == "calls":
        raise UsageError("--runtime is about imports, not calls", "leave out --runtime or --by calls")
    links = module_imports(reader, repo_id) if by == "imports" else _calls(reader, repo_id)
    if runtime:
        links = [link for link in links if link.method == AT_ONCE]
    kind = "MODULE" if by == "imports" else "FUNCTION"
    whole, strong = _graph(links), _graph([link for link in links if link.method not in (LATER, NEVER)])
    groups = components(whole)
    names = _names(reader, kind, repo_id) if groups else {}
    shortest = []
    for members in groups:
        # Ranked by name, so that the choice of a cycle does not depend on ids.
        ordered = {node: names[node] for node in members}
        shortest.append((len(members), _shortest(ordered, strong) or _shortest(ordered, whole)))
    shortest.sort(key=lambda each: (-each[0], [names[node] for node in each[1]]))
    best = {(link.start, link.end): link for link in reversed(links)}
    rows = [
        _row(number, size, best[node, cycle[(at + 1) % len(cycle)]], names, kind)
        for number, (size, cycle) in enumerate(shortest, 1)
        for at, node in enumerate(cycle)
    ]
    recursive = sum(link.start == link.end for link in links) if by == "calls" else 0
    notes = (f"{recursive:,} functions that call themselves directly are not counted",) if recursive else ()
    return rows_result(COLUMNS, rows, notes)


def _shortest(names: Mapping[str, tuple[str, str, str]], graph: Mapping[str, set[str]]) -> list[str]:
    """Return the shortest cycle among the named nodes, ranked by name; empty if there is none."""
    inside = {node: graph[node] & names.keys() for node in names if node in graph}
    candidates = [shortest_cycle(members, inside, names) for members in components(inside)]
    return min(candidates, key=lambda cycle: (len(cycle), [names[node] for node in cycle]), default=[])


def _graph(links: Sequence[Link]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for link in links:
        graph.setdefault(link.start, set()).add(link.end)
    return graph


def _names(reader: Reader, kind: str, repo_id: str | None) -> dict[str, tuple[str, str, str]]:
    """Return name, repository and id of modules or functions, their sort key, by id."""
    query = Query("SELECT n.node_id, n.qualname, n.repo_id FROM n", {"n": nodes((kind,), repo_id)})
    return {node: (name or "", repo, node) for node, name, repo in reader.rows(query)}


def _row(
    number: int, size: int, link: Link, names: Mapping[str, tuple[str, str, str]], kind: str
) -> dict[str, Any]:
    name, repo_id, node_id = names[link.start]
    return {
        "group_id": str(number),
        "amount": size,
        "symbol": name,
        "kind": kind,
        "path": link.path,
        "line": link.line,
        "target": names[link.end][0],
        "relation": link.relation,
        "confidence": link.confidence,
        "method": link.method,
        "repo_id": repo_id,
        "symbol_id": node_id,
    }


def _calls(reader: Reader, repo_id: str | None) -> list[Link]:
    """Read the edges between functions of the call graph."""
    query = Query(
        "SELECT e.src_node_id, e.dst_node_id, e.edge_kind, e.path, e.line, e.confidence, e.resolution_method"
        " FROM e WHERE left(e.src_node_id, 9) = 'function:' AND left(e.dst_node_id, 9) = 'function:'",
        {"e": edges(CALL_GRAPH, repo_id)},
        order=("src_node_id", "dst_node_id", "path", "line"),
    )
    return [Link(*row) for row in reader.rows(query)]
