"""List the callers or callees of a symbol, nearest first (`callers SYMBOL`, `callees SYMBOL`).

    callers(reader, resolve(reader, "Session.send"), depth=2)
    callees(reader, resolve(reader, "requests.get"))

The nodes of the call graph are functions, and modules for the code that runs on import. A class is called
where it is instantiated, and calls what the functions inside of it call. The location of a row is that of the
first call.

Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import InlineRows, Reader, nodes
from codeanatomy.query.symbols import EXTERNAL_KINDS
from codeanatomy.query.verbs.result import VerbResult, query_result
from codeanatomy.query.walks.enclosing import CALLER_KINDS, definitions_in, find_instantiations
from codeanatomy.query.walks.reachability import CALL_GRAPH, MAX_REACHED, Hop, reach

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "depth",
    "via",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# Nodes whose names are looked up by id; for more, the names of all nodes are read.
MAX_ID_LOOKUPS = 1000
HOP_COLUMNS = tuple(
    SHARED[name] for name in ("symbol_id", "depth", "via", "path", "line", "confidence", "method")
)


def callers(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List the callers of a symbol, up to `depth` calls away."""
    return _with_names(symbol, *caller_hops(reader, symbol, depth))


def callees(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List what a symbol calls, up to `depth` calls away."""
    return _with_names(symbol, *callee_hops(reader, symbol, depth))


def caller_hops(reader: Reader, symbol: Symbol, depth: int = 1) -> tuple[list[Hop], bool]:
    """Return hops to the callers of a symbol, one per node, and whether the search is complete."""
    hops, complete = reach(reader, dict.fromkeys(symbol.ids, 1.0), CALL_GRAPH, "dst", depth)
    if symbol.kind != "CLASS":
        return hops, complete
    instantiations = _nearest(find_instantiations(reader, symbol.ids))
    if instantiations and depth > 1:
        # Callers of a function that instantiates the class have at most the confidence of the instantiation.
        confidences = {hop.node_id: hop.confidence for hop in instantiations}
        more, all_reached = reach(reader, confidences, CALL_GRAPH, "dst", depth - 1)
        hops += [structs.replace(hop, depth=hop.depth + 1) for hop in more]
        complete = complete and all_reached
    return _nearest([*instantiations, *hops]), complete


def callee_hops(reader: Reader, symbol: Symbol, depth: int = 1) -> tuple[list[Hop], bool]:
    """Return hops to the callees of a symbol, one per node, and whether the search is complete."""
    start: Iterable[str] = symbol.ids
    if symbol.kind == "CLASS":
        start = (node for node in definitions_in(reader, symbol) if node.startswith("function:"))
    return reach(reader, dict.fromkeys(start, 1.0), CALL_GRAPH, "src", depth)


def _nearest(hops: Iterable[Hop]) -> list[Hop]:
    """Keep one hop per node: the smallest depth, then the highest confidence, then the first location."""
    kept: dict[str, Hop] = {}
    for hop in sorted(hops, key=_order):
        kept.setdefault(hop.node_id, hop)
    return list(kept.values())


def _order(hop: Hop) -> tuple[int | float | str, ...]:
    return hop.depth, -hop.confidence, hop.path or "", hop.line or 0, hop.via, hop.edge_kind


def _with_names(symbol: Symbol, hops: Sequence[Hop], complete: bool) -> VerbResult:
    """Build the query that joins names to the hops, nearest first."""
    rows = [(hop.node_id, hop.depth, hop.via, hop.path, hop.line, hop.confidence, hop.method) for hop in hops]
    ids = {node for hop in hops for node in (hop.node_id, hop.via)}
    by_id = {"node_id": sorted(ids)} if len(ids) <= MAX_ID_LOOKUPS else {}
    named = nodes((*CALLER_KINDS, "CLASS", *EXTERNAL_KINDS), symbol.repo_id, **by_id)
    return query_result(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, h.path, h.line,"
        " h.depth, coalesce(v.qualname, v.name) AS via, h.confidence, h.method, n.repo_id,"
        " n.node_id AS symbol_id"
        " FROM h JOIN n ON n.node_id = h.symbol_id LEFT JOIN n v ON v.node_id = h.via",
        {"h": InlineRows(HOP_COLUMNS, rows), "n": named},
        order=("depth", "symbol", "path", "line", "symbol_id"),
        notes=() if complete else (f"stopped after {MAX_REACHED:,} symbols: use a smaller --depth",),
    )
