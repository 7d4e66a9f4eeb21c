"""Find a shortest path from one symbol to another, by calls or by data flow (`path A B`).

    path(reader, resolve(reader, "shop.cart.sell"), resolve(reader, "json.dumps"))
    # 1  shop.cart.Cart.checkout   called in shop/cart.py:48
    # 2  shop.cart.print_bill      called in shop/cart.py:33
    # 3  json.dumps                called in shop/cart.py:52

Each row is a step: the symbol that is reached, the one before it (`via`), and the location. The search is
bidirectional, level by level. A class starts at the functions inside of it, and is reached where it is
instantiated or its `__init__` is called. Among paths of equal length the one with the highest confidence wins
(that of its weakest step), then the first by names.

The absence of a path is proven only if every call reachable from A is resolved. Otherwise the answer is
"unknown", with the reason: unresolved calls, or the depth limit.

Tests: `tests/unit/query/test_verb_path.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, nodes
from codeanatomy.query.symbols import EXTERNAL_KINDS, KINDS, VARIABLES
from codeanatomy.query.unresolved_uses import unresolved_calls
from codeanatomy.query.verbs.flows import flow_path
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.enclosing import (
    count_call_sites,
    defined_sql,
    definitions_in,
    find_instantiations,
)
from codeanatomy.query.walks.reachability import CALL_GRAPH, MAX_REACHED, Hop, neighbours

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "source",
    "sites",
    "defined",
    "depth",
    "via",
    "relation",
    "inside",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
CONSTRUCTORS = ("__init__", "__new__")


def path(
    reader: Reader, start: Symbol, end: Symbol, *, by: Literal["calls", "flow"] = "calls", depth: int = 12
) -> VerbResult:
    """Find a shortest path from one symbol to another, of at most `depth` steps."""
    if by == "flow":
        return flow_path(reader, start, end, depth, COLUMNS)
    if by != "calls":
        raise UsageError(f"--by must be calls or flow, got {by!r}", "use --by calls or --by flow")
    for each in (start, end):
        if each.kind in VARIABLES:
            raise UsageError(f"{each.symbol} is a variable and has no calls", "use --by flow")
    if start.kind in EXTERNAL_KINDS:
        external = f"unknown whether there is a path: what {start.symbol} calls is not in the lake"
        return rows_result(COLUMNS, (), (external,), unknown=True)
    search = _Search(reader, _start_nodes(reader, start), _end_nodes(reader, end))
    if end.kind == "CLASS":
        search.instantiations = [hop.reversed() for hop in find_instantiations(reader, end.ids)]
    steps = search.run(depth)
    if steps:
        return rows_result(COLUMNS, _rows(reader, steps))
    reason = search.explain_no_path(start, end, depth)
    return rows_result(COLUMNS, (), (reason,), unknown=reason.startswith("unknown"))


class _Search:
    """A bidirectional search; hops are kept as edges from `via` to `node_id`."""

    def __init__(self, reader: Reader, start: Collection[str], end: Collection[str]) -> None:
        self.reader = reader
        # Distance of each reached node from the start, and from the end.
        self.after = dict.fromkeys(start, 0)
        self.before = dict.fromkeys(end, 0)
        # Nodes to expand next, at the start's side and at the end's side.
        self.level, self.last = list(start), list(end)
        # Where the class at the end is instantiated.
        self.instantiations: list[Hop] = []
        self.edges: list[Hop] = []

    def run(self, depth: int) -> list[Hop]:
        """Return the best of the shortest paths; empty if none was found."""
        for length in range(1, depth + 1):
            forward = len(self.level) <= len(self.last)
            edges = self._forward() if forward else self._backward()
            self.edges += edges
            meeting = [e for e in edges if e.via in self.after and e.node_id in self.before]
            if meeting:
                return self._best(meeting, length)
            if forward:
                self.level = _add_distances(self.after, (e.node_id for e in edges))
            else:
                self.last = _add_distances(self.before, (e.via for e in edges))
            if not self.level or not self.last or len(self.after) + len(self.before) > MAX_REACHED:
                break
        return []

    def _forward(self) -> list[Hop]:
        hops = neighbours(self.reader, self.level, CALL_GRAPH, "src")
        level = set(self.level)
        return [*hops, *(hop for hop in self.instantiations if hop.via in level)]

    def _backward(self) -> list[Hop]:
        hops = neighbours(self.reader, self.last, CALL_GRAPH, "dst")
        level = set(self.last)
        # Reversed, so that they lead from the caller.
        calls = [hop.reversed() for hop in hops]
        return [*calls, *(hop for hop in self.instantiations if hop.node_id in level)]

    def _best(self, meeting: Sequence[Hop], length: int) -> list[Hop]:
        """Return the path of this length with the highest confidence, then the first by name."""
        layers = self._layers(meeting, length)
        confidence = max(_path_confidences(layers).values())
        kept = _connected([[e for e in layer if e.confidence >= confidence] for layer in layers])
        names = node_names(
            self.reader, {node for layer in kept for e in layer for node in (e.via, e.node_id)}
        )
        steps: list[Hop] = []
        for layer in kept:
            candidates = [e for e in layer if not steps or e.via == steps[-1].node_id]
            steps.append(
                min(candidates, key=lambda e: (*_key(names, e.via), *_key(names, e.node_id), e.edge_kind))
            )
        return steps

    def _layers(self, meeting: Sequence[Hop], length: int) -> list[list[Hop]]:
        """Return the edges of all shortest paths, by their position in the path."""
        position = self.after[meeting[0].via]
        layers: list[list[Hop]] = [[] for _ in range(length)]
        layers[position] = list(meeting)
        for at in range(position - 1, -1, -1):
            wanted = {e.via for e in layers[at + 1]}
            layers[at] = [e for e in self.edges if e.node_id in wanted and self.after.get(e.via) == at]
        for at in range(position + 1, length):
            wanted = {e.node_id for e in layers[at - 1]}
            left = length - at - 1
            layers[at] = [e for e in self.edges if e.via in wanted and self.before.get(e.node_id) == left]
        return layers

    def explain_no_path(self, start: Symbol, end: Symbol, depth: int) -> str:
        """Explain an empty answer: there is no path, or it is unknown whether there is one."""
        ends = f"{start.symbol} to {end.symbol}"
        unresolved, seen = 0, set[str]()
        while not unresolved:
            unresolved = len(unresolved_calls(self.reader, self.after.keys() - seen))
            seen |= self.after.keys()
            if unresolved or not self.level or max(self.after.values()) >= depth or len(seen) > MAX_REACHED:
                break
            # Only unresolved calls behind the start matter, so only that side is expanded.
            self.level = _add_distances(self.after, (e.node_id for e in self._forward()))
        if unresolved:
            return (
                f"unknown whether there is a path from {ends}: none is known, but at least {unresolved:,}"
                " call sites reachable from the start are not resolved, or not to all of their targets"
            )
        if self.level:
            return (
                f"unknown whether there is a path from {ends}: none of up to {depth} steps; use a larger"
                " --depth"
            )
        return (
            f"no path from {ends}: every call reachable from the start is resolved, and none leads there"
            " (calls back from external libraries are not known)"
        )


def _start_nodes(reader: Reader, symbol: Symbol) -> list[str]:
    if symbol.kind == "CLASS":
        return sorted(node for node in definitions_in(reader, symbol) if node.startswith("function:"))
    return list(symbol.ids)


def _end_nodes(reader: Reader, symbol: Symbol) -> list[str]:
    if symbol.kind != "CLASS":
        return list(symbol.ids)
    constructors = {f"{symbol.symbol}.{name}" for name in CONSTRUCTORS}
    definitions = definitions_in(reader, symbol).items()
    return [*symbol.ids, *sorted(node for node, name in definitions if name in constructors)]


def _add_distances(distances: dict[str, int], reached: Iterable[str]) -> list[str]:
    """Record the new nodes at one more than the greatest distance, and return them."""
    further = max(distances.values(), default=0) + 1
    new = sorted({node for node in reached if node not in distances})
    distances.update(dict.fromkeys(new, further))
    return new


def _path_confidences(layers: Sequence[Sequence[Hop]]) -> dict[str, float]:
    """Return the confidence of the best path to each last node: that of its weakest edge."""
    best = {e.via: 1.0 for e in layers[0]}
    for layer in layers:
        reached: dict[str, float] = {}
        for e in layer:
            if e.via in best:
                reached[e.node_id] = max(reached.get(e.node_id, 0.0), min(best[e.via], e.confidence))
        best = reached
    return best


def _connected(layers: Sequence[Sequence[Hop]]) -> list[list[Hop]]:
    """Drop the edges from which the end can no longer be reached."""
    kept: list[list[Hop]] = []
    for layer in reversed(layers):
        wanted = {e.via for e in kept[0]} if kept else {e.node_id for e in layer}
        kept.insert(0, [e for e in layer if e.node_id in wanted])
    return kept


def node_names(reader: Reader, ids: Collection[str]) -> dict[str, tuple[Any, ...]]:
    """Return name, kind, subkind, repository and definition of nodes, by id."""
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name), n.node_kind, n.subkind, n.repo_id,"
        f" {defined_sql('n')} FROM n",
        {"n": nodes(KINDS, node_id=tuple(sorted(ids)))},
    )
    return {node: tuple(rest) for node, *rest in reader.rows(query)}


def _key(names: dict[str, tuple[Any, ...]], node: str) -> tuple[str, str]:
    return names[node][0], node


def _rows(reader: Reader, steps: Sequence[Hop]) -> list[dict[str, Any]]:
    names = node_names(reader, {node for step in steps for node in (step.via, step.node_id)})
    sites = count_call_sites(reader, {(step.via, step.node_id) for step in steps})
    return [
        {
            "symbol": names[step.node_id][0],
            "kind": names[step.node_id][1],
            "subkind": names[step.node_id][2],
            "path": step.path,
            "line": step.line,
            "sites": sites.get((step.via, step.node_id)),
            "defined": names[step.node_id][4],
            "depth": number,
            "via": names[step.via][0],
            "relation": step.edge_kind,
            "confidence": step.confidence,
            "method": step.method,
            "repo_id": names[step.node_id][3],
            "symbol_id": step.node_id,
        }
        for number, step in enumerate(steps, start=1)
    ]
