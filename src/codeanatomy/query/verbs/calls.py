"""`callers SYMBOL` and `callees SYMBOL`: who calls it, what it calls, and so on, nearest first.

    callers(reader, resolve(reader, "Session.send"), depth=2)
    callees(reader, resolve(reader, "requests.get"))

As the call graph has it: functions, and modules for what they run when they are imported. A class is called
where an instance of it is made, and calls what the functions inside of it call. The place of a row is that of
the (first) call. Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Held, Reader, nodes
from codeanatomy.query.symbols import OUTSIDE
from codeanatomy.query.verbs.result import Found, found
from codeanatomy.query.walks.enclosing import CALLERS, definitions_in, makers
from codeanatomy.query.walks.reachability import CALL_GRAPH, REACHED, Step, reach

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
# Up to so many nodes are looked up by their ids; of more, all names are read.
NAMED_BY_ID = 1000
STEP = tuple(SHARED[name] for name in ("symbol_id", "depth", "via", "path", "line", "confidence", "method"))


def callers(reader: Reader, symbol: Symbol, *, depth: int = 1) -> Found:
    """Who calls a symbol, up to so many steps away."""
    return _named(symbol, *calling(reader, symbol, depth))


def callees(reader: Reader, symbol: Symbol, *, depth: int = 1) -> Found:
    """What a symbol calls, up to so many steps away."""
    return _named(symbol, *called(reader, symbol, depth))


def calling(reader: Reader, symbol: Symbol, depth: int = 1) -> tuple[list[Step], bool]:
    """The steps to who calls a symbol, each node once; and whether these are all."""
    steps, whole = reach(reader, dict.fromkeys(symbol.ids, 1.0), CALL_GRAPH, "dst", depth)
    if symbol.kind != "CLASS":
        return steps, whole
    made = _nearest(makers(reader, symbol.ids))
    if made and depth > 1:
        # Who calls a maker calls the class as surely as the maker makes it.
        trust = {step.node_id: step.confidence for step in made}
        more, all_of_them = reach(reader, trust, CALL_GRAPH, "dst", depth - 1)
        steps += [structs.replace(step, depth=step.depth + 1) for step in more]
        whole = whole and all_of_them
    return _nearest([*made, *steps]), whole


def called(reader: Reader, symbol: Symbol, depth: int = 1) -> tuple[list[Step], bool]:
    """The steps to what a symbol calls, each node once; and whether these are all."""
    start: Iterable[str] = symbol.ids
    if symbol.kind == "CLASS":
        start = (node for node in definitions_in(reader, symbol) if node.startswith("function:"))
    return reach(reader, dict.fromkeys(start, 1.0), CALL_GRAPH, "src", depth)


def _nearest(steps: Iterable[Step]) -> list[Step]:
    """Each node once, as near and as trusted as it is, where that is first."""
    kept: dict[str, Step] = {}
    for step in sorted(steps, key=_order):
        kept.setdefault(step.node_id, step)
    return list(kept.values())


def _order(step: Step) -> tuple[int | float | str, ...]:
    return step.depth, -step.confidence, step.path or "", step.line or 0, step.via, step.edge_kind


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
