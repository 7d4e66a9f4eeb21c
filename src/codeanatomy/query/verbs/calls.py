"""`callers SYMBOL` and `callees SYMBOL`: who calls it, what it calls, and so on, nearest first.

    callers(reader, resolve(reader, "Session.send"), depth=2)
    callees(reader, resolve(reader, "requests.get"))

As the call graph has it: functions, and modules for what they run when they are imported. A class is called
where an instance of it is made, and calls what the functions inside of it call. The place of a row is that of
the (first) call. Tests: `tests/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.answers import Symbol
from codeanatomy.query.lanes.reading import Held, Query, Reader, Slice
from codeanatomy.query.symbols import OUTSIDE, nodes
from codeanatomy.query.verbs.found import Found, found
from codeanatomy.query.walks.reaching import REACHED, Step, reach

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
CALLERS = ("FUNCTION", "MODULE")
# Up to so many nodes are looked up by their ids; of more, all names are read.
NAMED_BY_ID = 1000
GRAPH = ("CALL_GRAPH",)
STEP = tuple(SHARED[name] for name in ("symbol_id", "depth", "via", "path", "line", "confidence", "method"))


def callers(reader: Reader, symbol: Symbol, *, depth: int = 1) -> Found:
    """Who calls a symbol, up to so many steps away."""
    steps, whole = reach(reader, symbol.ids, GRAPH, "dst", depth)
    makers = _makers(reader, symbol) if symbol.kind == "CLASS" else []
    if makers and depth > 1:
        more, all_of_them = reach(reader, [step.node_id for step in makers], GRAPH, "dst", depth - 1)
        steps += [structs.replace(step, depth=step.depth + 1) for step in more]
        whole = whole and all_of_them
    return _named(symbol, _nearest([*makers, *steps]), whole)


def callees(reader: Reader, symbol: Symbol, *, depth: int = 1) -> Found:
    """What a symbol calls, up to so many steps away."""
    start = _inside(reader, symbol) if symbol.kind == "CLASS" else symbol.ids
    steps, whole = reach(reader, start, GRAPH, "src", depth)
    return _named(symbol, steps, whole)


def _makers(reader: Reader, symbol: Symbol) -> list[Step]:
    """Where instances of a class are made, by the function or module around it."""
    query = Query(
        "SELECT min_by(d.node_id, coalesce(d.bend - d.bstart, 9223372036854775807)), e.dst_node_id, e.path,"
        " e.line, e.confidence, e.resolution_method FROM e JOIN d ON d.file_id = e.owner_file_id"
        " AND coalesce(d.bstart, 0) <= e.bstart AND coalesce(d.bend, 9223372036854775807) >= e.bend"
        " GROUP BY e.edge_id, e.dst_node_id, e.path, e.line, e.bstart, e.confidence, e.resolution_method"
        " ORDER BY e.path, e.bstart",
        {
            "e": Slice("cpg_edges_by_dst", dst_node_id=symbol.ids, edge_kind=("INSTANTIATES",)),
            "d": nodes(CALLERS, symbol.repo_id),
        },
    )
    return [
        Step(maker, 1, made, "INSTANTIATES", path, line, confidence, method)
        for maker, made, path, line, confidence, method in reader.rows(query)
    ]


def _inside(reader: Reader, symbol: Symbol) -> list[str]:
    """The functions inside of a class."""
    query = Query(
        "SELECT f.node_id FROM c JOIN f ON f.file_id = c.file_id"
        " AND f.bstart >= c.bstart AND f.bend <= c.bend",
        {
            "c": nodes(("CLASS",), symbol.repo_id, node_id=symbol.ids),
            "f": nodes(("FUNCTION",), symbol.repo_id),
        },
    )
    return [row[0] for row in reader.rows(query)]


def _nearest(steps: Sequence[Step]) -> list[Step]:
    """Each node once, as near and as trusted as it is."""
    kept: dict[str, Step] = {}
    for step in sorted(steps, key=lambda each: (each.depth, -each.confidence)):
        kept.setdefault(step.node_id, step)
    return list(kept.values())


def _named(symbol: Symbol, steps: Sequence[Step], whole: bool) -> Found:
    """The steps with names, nearest first."""
    rows = [
        (step.node_id, step.depth, step.via, step.path, step.line, step.confidence, step.method)
        for step in steps
    ]
    ids = {node for step in steps for node in (step.node_id, step.via)}
    few = {"node_id": sorted(ids)} if len(ids) <= NAMED_BY_ID else {}
    named = nodes((*CALLERS, "CLASS", *OUTSIDE), symbol.repo_id, **few)
    return found(
        COLUMNS,
        "SELECT coalesce(n.qualname, n.name) AS symbol, n.node_kind AS kind, n.subkind, h.path, h.line,"
        " h.depth, coalesce(v.qualname, v.name) AS via, h.confidence, h.method, n.repo_id,"
        " n.node_id AS symbol_id"
        " FROM h JOIN n ON n.node_id = h.symbol_id LEFT JOIN n v ON v.node_id = h.via",
        {"h": Held(STEP, rows), "n": named},
        order=("depth", "symbol", "path", "line", "symbol_id"),
        notes=() if whole else (f"stopped after {REACHED:,} symbols: ask with a smaller --depth",),
    )
