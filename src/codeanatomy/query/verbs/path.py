"""`path A B`: how one symbol leads to another, by calls or by data flow, in as few steps as possible.

    path(reader, resolve(reader, "shop.cart.sell"), resolve(reader, "json.dumps"))
    # 1  shop.cart.Cart.checkout   called in shop/cart.py:48
    # 2  shop.cart.print_bill      called in shop/cart.py:33
    # 3  json.dumps                called in shop/cart.py:52

Each row is a step: what is reached, from what (`via`), and where. Calls are followed from both ends, level by
level. A class begins with the functions inside of it, and is reached where an instance of it is made or its
`__init__` is called. Among paths of one length, the one whose least trusted step is trusted most is told, and
of those the first by its names.

That there is no path is proven only if everything that A leads to is known. Otherwise the answer is
"unknown", with what stands in the way: calls that could not be resolved, or the depth.

Tests: `tests/unit/query/test_verb_path.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes
from codeanatomy.query.symbols import KINDS, OUTSIDE, VARIABLES
from codeanatomy.query.verbs.flows import flow_path
from codeanatomy.query.verbs.result import Found, held
from codeanatomy.query.walks.enclosing import CALLERS, definitions_in, innermost, makers
from codeanatomy.query.walks.reachability import CALL_GRAPH, REACHED, Step, neighbours

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "depth",
    "via",
    "relation",
    "inside",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
MADE_BY = ("__init__", "__new__")


def path(
    reader: Reader, start: Symbol, end: Symbol, *, by: Literal["calls", "flow"] = "calls", depth: int = 12
) -> Found:
    """A shortest path from one symbol to another, of so many steps at most."""
    if by == "flow":
        return flow_path(reader, start, end, depth, COLUMNS)
    if by != "calls":
        raise UsageError(f"no paths by {by!r}", "--by calls or --by flow")
    for each in (start, end):
        if each.kind in VARIABLES:
            raise UsageError(f"{each.symbol} is a variable and calls nothing", "ask with --by flow")
    if start.kind in OUTSIDE:
        outside = f"unknown whether there is a path: what {start.symbol} calls is not in the lake"
        return held(COLUMNS, (), (outside,))
    search = _Search(reader, _begin(reader, start), _ends(reader, end))
    if end.kind == "CLASS":
        search.made = [step.turned() for step in makers(reader, end.ids)]
    found = search.run(depth)
    if found:
        return held(COLUMNS, _rows(reader, found))
    return held(COLUMNS, (), (search.reason(start, end, depth),))


class _Search:
    """A search from both ends; steps are kept as edges from `via` to `node_id`."""

    def __init__(self, reader: Reader, start: Collection[str], end: Collection[str]) -> None:
        self.reader = reader
        # How far each node is from the start, and from the end.
        self.after = dict.fromkeys(start, 0)
        self.before = dict.fromkeys(end, 0)
        self.level, self.last = list(start), list(end)
        # Where instances of the class at the end are made.
        self.made: list[Step] = []
        self.edges: list[Step] = []

    def run(self, depth: int) -> list[Step]:
        """The best of the shortest paths; none if there is none."""
        for length in range(1, depth + 1):
            forward = len(self.level) <= len(self.last)
            edges = self._forward() if forward else self._backward()
            self.edges += edges
            meeting = [e for e in edges if e.via in self.after and e.node_id in self.before]
            if meeting:
                return self._best(meeting, length)
            if forward:
                self.level = _spread(self.after, (e.node_id for e in edges))
            else:
                self.last = _spread(self.before, (e.via for e in edges))
            if not self.level or not self.last or len(self.after) + len(self.before) > REACHED:
                break
        return []

    def _forward(self) -> list[Step]:
        found = neighbours(self.reader, self.level, CALL_GRAPH, "src")
        here = set(self.level)
        return [*found, *(step for step in self.made if step.via in here)]

    def _backward(self) -> list[Step]:
        found = neighbours(self.reader, self.last, CALL_GRAPH, "dst")
        here = set(self.last)
        # Steps lead from the caller.
        turned = [step.turned() for step in found]
        return [*turned, *(step for step in self.made if step.node_id in here)]

    def _best(self, meeting: Sequence[Step], length: int) -> list[Step]:
        """Of all paths of this length the one that is trusted most, then the first by name."""
        layers = self._layers(meeting, length)
        trust = max(_trust(layers).values())
        kept = _connected([[e for e in layer if e.confidence >= trust] for layer in layers])
        names = names_of(self.reader, {node for layer in kept for e in layer for node in (e.via, e.node_id)})
        found: list[Step] = []
        for layer in kept:
            open_to = [e for e in layer if not found or e.via == found[-1].node_id]
            found.append(
                min(open_to, key=lambda e: (*_key(names, e.via), *_key(names, e.node_id), e.edge_kind))
            )
        return found

    def _layers(self, meeting: Sequence[Step], length: int) -> list[list[Step]]:
        """The edges of all shortest paths, by their place in the path."""
        place = self.after[meeting[0].via]
        layers: list[list[Step]] = [[] for _ in range(length)]
        layers[place] = list(meeting)
        for at in range(place - 1, -1, -1):
            wanted = {e.via for e in layers[at + 1]}
            layers[at] = [e for e in self.edges if e.node_id in wanted and self.after.get(e.via) == at]
        for at in range(place + 1, length):
            wanted = {e.node_id for e in layers[at - 1]}
            left = length - at - 1
            layers[at] = [e for e in self.edges if e.via in wanted and self.before.get(e.node_id) == left]
        return layers

    def reason(self, start: Symbol, end: Symbol, depth: int) -> str:
        """Why no path is told: because there is none, or because that is not known."""
        said = f"{start.symbol} to {end.symbol}"
        unresolved, seen = 0, set[str]()
        while not unresolved:
            unresolved = _unresolved(self.reader, self.after.keys() - seen)
            seen |= self.after.keys()
            if unresolved or not self.level or max(self.after.values()) >= depth or len(seen) > REACHED:
                break
            # Only what cannot be resolved behind the start matters, so the other end waits.
            self.level = _spread(self.after, (e.node_id for e in self._forward()))
        if unresolved:
            return (
                f"unknown whether there is a path from {said}: none is known, but call sites on the way"
                f" are not resolved, or not to all they may call: at least {unresolved:,}"
            )
        if self.level:
            return (
                f"unknown whether there is a path from {said}: none of up to {depth} steps; ask with a larger"
                " --depth"
            )
        return (
            f"no path from {said}: every call on the way is resolved, and none leads there (what libraries"
            " outside call back is not known)"
        )


def _begin(reader: Reader, symbol: Symbol) -> list[str]:
    if symbol.kind == "CLASS":
        return sorted(node for node in definitions_in(reader, symbol) if node.startswith("function:"))
    return list(symbol.ids)


def _ends(reader: Reader, symbol: Symbol) -> list[str]:
    if symbol.kind != "CLASS":
        return list(symbol.ids)
    made_by = {f"{symbol.symbol}.{name}" for name in MADE_BY}
    found = definitions_in(reader, symbol).items()
    return [*symbol.ids, *sorted(node for node, name in found if name in made_by)]


def _spread(distances: dict[str, int], reached: Iterable[str]) -> list[str]:
    """The nodes that are new, one step further away than any before."""
    further = max(distances.values(), default=0) + 1
    new = sorted({node for node in reached if node not in distances})
    distances.update(dict.fromkeys(new, further))
    return new


def _trust(layers: Sequence[Sequence[Step]]) -> dict[str, float]:
    """How much the best way to each last node is trusted: as its least trusted edge."""
    best = {e.via: 1.0 for e in layers[0]}
    for layer in layers:
        reached: dict[str, float] = {}
        for e in layer:
            if e.via in best:
                reached[e.node_id] = max(reached.get(e.node_id, 0.0), min(best[e.via], e.confidence))
        best = reached
    return best


def _connected(layers: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """The edges from which the end can still be reached."""
    kept: list[list[Step]] = []
    for layer in reversed(layers):
        wanted = {e.via for e in kept[0]} if kept else {e.node_id for e in layer}
        kept.insert(0, [e for e in layer if e.node_id in wanted])
    return kept


def names_of(reader: Reader, ids: Collection[str]) -> dict[str, tuple[Any, ...]]:
    """Of nodes the name, kind, subkind and repository."""
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name), n.node_kind, n.subkind, n.repo_id FROM n",
        {"n": nodes(KINDS, node_id=tuple(sorted(ids)))},
    )
    return {node: tuple(rest) for node, *rest in reader.rows(query)}


def _key(names: dict[str, tuple[Any, ...]], node: str) -> tuple[str, str]:
    return names[node][0], node


def _unresolved(reader: Reader, functions: Collection[str]) -> int:
    """The call sites in functions and modules that may call more than is known."""
    sites = "(SELECT DISTINCT src_id, owner_file_id, bstart, bend FROM r WHERE reason IS NOT NULL)"
    query = Query(
        f"SELECT count(*) FROM w JOIN ({innermost(sites, 'src_id')}) AS u ON u.inner_id = w.node_id",
        {
            "r": Slice("relations_v1", relation_kind=("CALLS",)),
            "d": nodes(CALLERS),
            "w": nodes(CALLERS, node_id=tuple(sorted(functions))),
        },
    )
    return int(reader.rows(query)[0][0])


def _rows(reader: Reader, steps: Sequence[Step]) -> list[dict[str, Any]]:
    names = names_of(reader, {node for step in steps for node in (step.via, step.node_id)})
    return [
        {
            "symbol": names[step.node_id][0],
            "kind": names[step.node_id][1],
            "subkind": names[step.node_id][2],
            "path": step.path,
            "line": step.line,
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
