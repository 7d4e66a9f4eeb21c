"""`flows VARIABLE`: where the value of a parameter or variable goes, nearest first.

    flows(reader, resolve(reader, "shop.cart.Cart.add.price"))
    # shop.cart.Cart.add.price      REACHES    depth 1   shop/cart.py:26   used there

A value goes from a definition to its uses (REACHES; of attributes and of variables of other modules
REFERS_TO). A use that is a whole argument goes on to the parameter (PASSES_TO), one that is the whole right
side of an assignment to what is assigned (COPIES), one that is all that is returned to the function
(RETURNED). The last two are no edges of the graph but follow from the syntax tree: their method says so,
"assignment" and "return".

A step is from variable to variable: the uses of the variable that is asked about, and what they are passed
and copied to, are one step away. Of a parameter the value that it is given counts, of another variable any
value it gets.
Tests: `tests/unit/query/test_verb_flows.py`.
"""

from __future__ import annotations

from typing import Any

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.symbols import VARIABLES
from codeanatomy.query.verbs.result import Found, held
from codeanatomy.query.walks.reachability import REACHED
from codeanatomy.query.walks.value_flow import Flow, begin, parameters, step

COLUMNS = (
    "symbol",
    "kind",
    "path",
    "line",
    "relation",
    "inside",
    "depth",
    "via",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# In the order in which they happen at a place.
RELATIONS = ("REACHES", "REFERS_TO", "COPIES", "PASSES_TO", "RETURNED")
NOTES = ("values inside of containers and expressions, and of calls that return them, are not followed",)


def flows(reader: Reader, symbol: Symbol, *, depth: int = 5) -> Found:
    """Where the value of a variable goes, up to so many steps away."""
    if symbol.kind not in VARIABLES:
        own = parameters(reader, symbol) if symbol.kind == "FUNCTION" else {}
        hint = f"its parameters: {', '.join(own.values())}" if own else "name one, such as pkg.mod.f.x"
        raise UsageError(f"{symbol.symbol} is no parameter or variable", hint)
    level = begin(reader, symbol.ids, symbol.symbol)
    known = {each.state for each in level}
    # Each place once, as near as it is.
    places: dict[tuple[str, str, str, int | None], tuple[int, Flow]] = {}
    whole = True
    for distance in range(1, depth + 1):
        found = step(reader, level)
        for each in found:
            places.setdefault((each.relation, each.symbol_id, each.path, each.bstart), (distance, each))
        # Of a variable that is reached in several ways, the most trusted is gone on from.
        further: dict[str, Flow] = {}
        for each in sorted(found, key=lambda flow: -flow.confidence):
            if each.state is not None and each.state not in known:
                further.setdefault(each.state, each)
        known |= further.keys()
        level = list(further.values())
        if not level:
            break
        if len(places) > REACHED:
            whole = False
            break
    cut = () if whole else (f"stopped after {REACHED:,} places: ask with a smaller --depth",)
    rows = [_row(each, distance) for distance, each in sorted(places.values(), key=_order)]
    return held(COLUMNS, rows, (*NOTES, *cut))


def flow_path(reader: Reader, start: Symbol, end: Symbol, depth: int, columns: tuple[str, ...]) -> Found:
    """The shortest way of a value from one variable to another; a function stands for its parameters."""
    level = [
        flow for node, name in _variables(reader, start).items() for flow in begin(reader, (node,), name)
    ]
    wanted = _variables(reader, end)
    came: dict[str, Flow] = {}
    known = {each.state for each in level}
    for _ in range(depth):
        moved = [
            each for each in step(reader, level) if each.relation != "REACHES" and each.state is not None
        ]
        moved.sort(key=lambda flow: (-flow.confidence, flow.symbol, flow.path, flow.line or 0))
        for each in moved:
            if each.symbol_id in wanted:
                return held(columns, _way(each, came))
        level = []
        for each in moved:
            if each.state not in known and each.state is not None:
                known.add(each.state)
                came[each.state] = each
                level.append(each)
        if not level:
            break
    said = f"from {start.symbol} to {end.symbol}"
    why = (
        f"unknown whether a value goes {said}: not in up to {depth} steps; ask with a larger --depth"
        if level
        else f"unknown whether a value goes {said}: no way is known"
    )
    return held(columns, (), (why, *NOTES))


def _variables(reader: Reader, symbol: Symbol) -> dict[str, str]:
    if symbol.kind == "FUNCTION":
        return parameters(reader, symbol)
    if symbol.kind not in VARIABLES:
        raise UsageError(f"{symbol.symbol} has no value that goes anywhere", "name a variable or a function")
    return dict.fromkeys(symbol.ids, symbol.symbol)


def _way(last: Flow, came: dict[str, Flow]) -> list[dict[str, Any]]:
    """The steps to the last one, from the first."""
    steps = [last]
    while (before := came.get(steps[0].source)) is not None:
        steps.insert(0, before)
    return [_row(each, number) for number, each in enumerate(steps, start=1)]


def _row(flow: Flow, depth: int) -> dict[str, Any]:
    return {
        "symbol": flow.symbol,
        "kind": flow.kind,
        "path": flow.path,
        "line": flow.line,
        "relation": flow.relation,
        "inside": flow.inside,
        "depth": depth,
        "via": flow.via,
        "confidence": flow.confidence,
        "method": flow.method,
        "repo_id": flow.repo_id,
        "symbol_id": flow.symbol_id,
    }


def _order(placed: tuple[int, Flow]) -> tuple[int, str, int, int, str, str]:
    distance, flow = placed
    return distance, flow.path, flow.bstart or 0, RELATIONS.index(flow.relation), flow.symbol, flow.symbol_id
