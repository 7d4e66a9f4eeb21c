"""List the callers or callees of a symbol, nearest first (`callers SYMBOL`, `callees SYMBOL`).

    callers(reader, resolve(reader, "Session.send"), depth=2)
    callees(reader, resolve(reader, "requests.get"))

The nodes of the call graph are functions, and modules for the code that runs on import. A class is called
where it is instantiated, and is a callee there, next to its constructors; it calls what the functions inside
of it call. The location of a row is that of the first of `sites` calls.

Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, nodes
from codeanatomy.query.overriding_methods import note_callers_of_overrides
from codeanatomy.query.symbols import EXTERNAL_KINDS
from codeanatomy.query.unresolved_uses import note_unresolved_calls, note_unresolved_uses
from codeanatomy.query.verbs.result import VerbResult, query_result, rows_result
from codeanatomy.query.walks.enclosing import (
    CALLER_KINDS,
    MAX_ID_LOOKUPS,
    count_call_sites,
    defined_sql,
    definitions_in,
    find_instantiated,
    find_instantiations,
)
from codeanatomy.query.walks.reachability import CALL_GRAPH, MAX_REACHED, Hop, reach

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
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
ORDER = ("depth", "symbol", "path", "line", "symbol_id")
NAMED_KINDS = (*CALLER_KINDS, "CLASS", *EXTERNAL_KINDS)
HOP_COLUMNS = tuple(
    SHARED[name] for name in ("symbol_id", "depth", "via", "path", "line", "sites", "confidence", "method")
)


def callers(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List the callers of a symbol, up to `depth` calls away."""
    hops, complete = caller_hops(reader, symbol, depth)
    sites = count_call_sites(reader, {(hop.node_id, hop.via) for hop in hops})
    counts = [sites.get((hop.node_id, hop.via)) for hop in hops]
    result = _with_names(reader, symbol, hops, counts, complete)
    result = note_callers_of_overrides(reader, result, symbol, {hop.node_id for hop in hops})
    return note_unresolved_uses(reader, result, symbol)


def callees(reader: Reader, symbol: Symbol, *, depth: int = 1) -> VerbResult:
    """List what a symbol calls, up to `depth` calls away."""
    hops, complete = callee_hops(reader, symbol, depth)
    sites = count_call_sites(reader, {(hop.via, hop.node_id) for hop in hops})
    counts = [sites.get((hop.via, hop.node_id)) for hop in hops]
    result = _with_names(reader, symbol, hops, counts, complete)
    inner = {hop.node_id for hop in hops if hop.depth < depth}
    return note_unresolved_calls(reader, result, inner.union(_callers_in(reader, symbol)))


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
    confidences = dict.fromkeys(_callers_in(reader, symbol), 1.0)
    hops, complete = reach(reader, confidences, CALL_GRAPH, "src", depth)
    depths = dict.fromkeys(confidences, 0)
    for hop in hops:
        if hop.depth < depth:
            depths.setdefault(hop.node_id, hop.depth)
            confidences.setdefault(hop.node_id, hop.confidence)
    classes = [
        structs.replace(hop, depth=depths[hop.via] + 1, confidence=min(hop.confidence, confidences[hop.via]))
        for hop in find_instantiated(reader, depths)
    ]
    return _nearest([*hops, *classes]), complete


def _callers_in(reader: Reader, symbol: Symbol) -> list[str]:
    """Return the nodes whose calls count for a symbol: those of a class are what is inside of it."""
    if symbol.kind != "CLASS":
        return list(symbol.ids)
    return [node for node in definitions_in(reader, symbol) if node.startswith("function:")]


def _nearest(hops: Iterable[Hop]) -> list[Hop]:
    """Keep one hop per node: the smallest depth, then the highest confidence, then the first location."""
    kept: dict[str, Hop] = {}
    for hop in sorted(hops, key=_order):
        kept.setdefault(hop.node_id, hop)
    return list(kept.values())


def _order(hop: Hop) -> tuple[int | float | str, ...]:
    return hop.depth, -hop.confidence, hop.path or "", hop.line or 0, hop.via, hop.edge_kind


def _with_names(
    reader: Reader, symbol: Symbol, hops: Sequence[Hop], sites: Sequence[int | None], complete: bool
) -> VerbResult:
    """Add the names of the nodes to the hops, nearest first."""
    notes = () if complete else (f"stopped after {MAX_REACHED:,} symbols: use a smaller --depth",)
    ids = {node for hop in hops for node in (hop.node_id, hop.via)}
    if len(ids) > MAX_ID_LOOKUPS:
        return _joined(symbol, hops, sites, notes)
    # Read once and joined here: DuckDB takes longer to plan such a join than to read the names.
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name), n.node_kind, n.subkind, n.repo_id,"
        f" {defined_sql('n')} FROM n",
        {"n": nodes(NAMED_KINDS, symbol.repo_id, node_id=sorted(ids))},
    )
    named = {node_id: facts for node_id, *facts in reader.rows(query)}
    rows = [
        _named_row(hop, count, named) for hop, count in zip(hops, sites, strict=True) if hop.node_id in named
    ]
    # Nulls last, as the engines sort.
    rows.sort(key=lambda row: [(row[name] is None, row[name]) for name in ORDER])
    return rows_result(COLUMNS, rows, notes)


def _named_row(hop: Hop, sites: int | None, named: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    symbol, kind, subkind, repo_id, defined = named[hop.node_id]
    return {
        "symbol": symbol,
        "kind": kind,
        "subkind": subkind,
        "path": hop.path,
        "line": hop.line,
        "sites": sites,
        "defined": defined,
        "depth": hop.depth,
        "via": named[hop.via][0] if hop.via in named else None,
        "confidence": hop.confidence,
        "method": hop.method,
        "repo_id": repo_id,
        "symbol_id": hop.node_id,
    }


def _joined(
    symbol: Symbol, hops: Sequence[Hop], sites: Sequence[int | None], notes: tuple[str, ...]
) -> VerbResult:
    """Build the query that joins the names of all nodes to the hops."""
    rows = [
        (hop.node_id, hop.depth, hop.via, hop.path, hop.line, count, hop.confidence, hop.method)
        for hop, count in zip(hops, sites, strict=True)
    ]
    return query_result(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, h.path, h.line,"
        f" CAST(NULL AS STRING) AS source, h.sites, {defined_sql('n')} AS defined,"
        " h.depth, coalesce(v.qualname, v.name) AS via, h.confidence, h.method, n.repo_id,"
        " n.node_id AS symbol_id"
        " FROM h JOIN n ON n.node_id = h.symbol_id LEFT JOIN n v ON v.node_id = h.via",
        {"h": InlineRows(HOP_COLUMNS, rows), "n": nodes(NAMED_KINDS, symbol.repo_id)},
        order=ORDER,
        notes=notes,
    )
