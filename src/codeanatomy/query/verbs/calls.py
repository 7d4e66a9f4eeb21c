"""List the callers or callees of a symbol, nearest first (`callers SYMBOL`, `callees SYMBOL`).

    callers(reader, resolve(reader, "Session.send"), depth=2)
    callees(reader, resolve(reader, "requests.get"))

The nodes of the call graph are functions, and modules for the code that runs on import. A class is called
where it is instantiated, and calls what the functions inside of it call. The location of a row is that of the
first call.

Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, nodes
from codeanatomy.query.symbols import EXTERNAL_KINDS
from codeanatomy.query.verbs.result import VerbResult, query_result, rows_result
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
ORDER = ("depth", "symbol", "path", "line", "symbol_id")
NAMED_KINDS = (*CALLER_KINDS, "CLASS", *EXTERNAL_KINDS)
# Nodes whose names are looked up by id; for more, the names of all nodes are joined.
MAX_ID_LOOKUPS = 1000
HOP_COLUMNS = tuple(
    SHARED[name] for name in ("symbol_id", "depth", "via", "path", "line", "confidence", "method")
)


def callers(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List the callers of a symbol, up to `depth` calls away."""
    return _with_names(reader, symbol, *caller_hops(reader, symbol, depth))


def callees(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List what a symbol calls, up to `depth` calls away."""
    return _with_names(reader, symbol, *callee_hops(reader, symbol, depth))


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


def _with_names(reader: Reader, symbol: Symbol, hops: Sequence[Hop], complete: bool) -> VerbResult:
    """Add the names of the nodes to the hops, nearest first."""
    notes = () if complete else (f"stopped after {MAX_REACHED:,} symbols: use a smaller --depth",)
    ids = {node for hop in hops for node in (hop.node_id, hop.via)}
    if len(ids) > MAX_ID_LOOKUPS:
        return _joined(symbol, hops, notes)
    # Read once and joined here: DuckDB takes longer to plan such a join than to read the names.
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name), n.node_kind, n.subkind, n.repo_id FROM n",
        {"n": nodes(NAMED_KINDS, symbol.repo_id, node_id=sorted(ids))},
    )
    named = {node_id: facts for node_id, *facts in reader.rows(query)}
    rows = [_named_row(hop, named) for hop in hops if hop.node_id in named]
    # Nulls last, as the engines sort.
    rows.sort(key=lambda row: [(row[name] is None, row[name]) for name in ORDER])
    return rows_result(COLUMNS, rows, notes)


def _named_row(hop: Hop, named: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    symbol, kind, subkind, repo_id = named[hop.node_id]
    return {
        "symbol": symbol,
        "kind": kind,
        "subkind": subkind,
        "path": hop.path,
        "line": hop.line,
        "depth": hop.depth,
        "via": named[hop.via][0] if hop.via in named else None,
        "confidence": hop.confidence,
        "method": hop.method,
        "repo_id": repo_id,
        "symbol_id": hop.node_id,
    }


def _joined(symbol: Symbol, hops: Sequence[Hop], notes: tuple[str, ...]) -> VerbResult:
    """Build the query that joins the names of all nodes to the hops."""
    rows = [(hop.node_id, hop.depth, hop.via, hop.path, hop.line, hop.confidence, hop.method) for hop in hops]
    return query_result(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, h.path, h.line,"
        " h.depth, coalesce(v.qualname, v.name) AS via, h.confidence, h.method, n.repo_id,"
        " n.node_id AS symbol_id"
        " FROM h JOIN n ON n.node_id = h.symbol_id LEFT JOIN n v ON v.node_id = h.via",
        {"h": InlineRows(HOP_COLUMNS, rows), "n": nodes(NAMED_KINDS, symbol.repo_id)},
        order=ORDER,
        notes=notes,
    )
