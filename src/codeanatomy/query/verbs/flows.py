"""List where the value of a parameter or variable flows, or comes from, nearest first (`flows VARIABLE`).

    flows(reader, resolve(reader, "shop.cart.Cart.add.price"))
    # shop.cart.Cart.add.price      REACHES    depth 1   shop/cart.py:26   used there
    flows(reader, resolve(reader, "shop.paths.values.keep.value"), direction="from")
    # shop.paths.values.take.two    PASSES_TO  depth 1   shop/paths/values.py:15   `two` is given to it there

A value flows from a definition to its uses (REACHES; REFERS_TO for attributes and variables of other
modules). A use that is a whole argument flows to the parameter (PASSES_TO), the whole right side of an
assignment to its targets (COPIES), the whole expression of a return statement to the function (RETURNED). The
branches of a conditional, the operands of `or` and `and` and the value of `(x := value)` are values of the
whole. COPIES and RETURNED are no edges of the graph but follow from the syntax tree; their methods are
"assignment" and "return".

Depth counts variables: the uses of the given variable, and the variables that they are passed or copied to,
are at depth 1. Of a parameter only the value passed in is followed, of another variable every assigned value.
With `returns` a value is also followed from a function that returns it to the calls of the function (CALLS),
or back. In both directions a row is one step at one place: from the variable one step nearer (`via`) to
`symbol`; a use that leads to no other variable has the variable itself.

Tests: `tests/unit/query/test_verb_flows.py`, `tests/unit/query/test_value_origin.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec import structs

from codeanatomy.catalog.views import FIRST_LINE
from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol, place
from codeanatomy.query.engines.statements import Query, Reader, edges, nodes
from codeanatomy.query.symbols import VARIABLES
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.enclosing import MAX_ID_LOOKUPS
from codeanatomy.query.walks.reachability import MAX_REACHED
from codeanatomy.query.walks.value_flow import ValueFlow, follow_flows, parameters, start_flows
from codeanatomy.query.walks.value_origin import follow_origins, start_origins

COLUMNS = (
    "symbol",
    "kind",
    "path",
    "line",
    "source",
    "defined",
    "relation",
    "inside",
    "depth",
    "via",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# In the order in which they happen at one place.
RELATIONS = ("REACHES", "REFERS_TO", "CALLS", "COPIES", "PASSES_TO", "RETURNED")
# What receives the value at a place; the other relations are uses.
RECEIVED = ("COPIES", "PASSES_TO", "RETURNED")
NOTE = "values inside of containers and expressions, and values returned by calls, are not followed"
RETURNS_NOTE = "values inside of containers and expressions are not followed"
Direction = Literal["to", "from"]


def flows(
    reader: Reader, symbol: Symbol, *, depth: int = 5, direction: Direction = "to", returns: bool = False
) -> VerbResult:
    """List where the value of a variable flows (`to`), or comes from, up to `depth` variables away."""
    if symbol.kind not in VARIABLES:
        own = parameters(reader, symbol) if symbol.kind == "FUNCTION" else {}
        hint = f"its parameters: {', '.join(own.values())}" if own else "name one, such as pkg.mod.f.x"
        raise UsageError(f"{symbol.symbol} is not a parameter or variable", hint)
    if direction not in ("to", "from"):
        raise UsageError(
            f"--direction must be to or from, got {direction!r}", "use --direction to or --direction from"
        )
    level = start_level(reader, symbol, direction)
    placed, complete = trace_flows(reader, level, depth, direction, returns=returns)
    cut = () if complete else (f"stopped after {MAX_REACHED:,} places: use a smaller --depth",)
    steps = one_per_step(placed, direction)
    defined = _definitions(reader, {each.symbol_id for _, each in steps})
    rows = [{**_row(each, distance), "defined": defined.get(each.symbol_id)} for distance, each in steps]
    return rows_result(COLUMNS, rows, (RETURNS_NOTE if returns else NOTE, *cut))


def one_per_step(
    placed: Sequence[tuple[int, ValueFlow]], direction: Direction
) -> list[tuple[int, ValueFlow]]:
    """Join the use of a variable with what receives its value at the same place."""
    receiving = [each for _, each in placed if each.relation in RECEIVED]
    if direction == "to":
        followed = {(*_span(each), each.via) for each in receiving}
        return [
            (distance, each)
            for distance, each in placed
            if each.relation in RECEIVED or (*_span(each), each.symbol) not in followed
        ]
    receivers = {(*_span(each), each.symbol): each for each in receiving}
    followed = {(*_span(each), each.via) for _, each in placed if each.relation not in RECEIVED}
    steps = []
    for distance, each in placed:
        receiver = receivers.get((*_span(each), each.via))
        if each.relation not in RECEIVED and receiver is not None:
            steps.append(
                (distance, structs.replace(each, relation=receiver.relation, method=receiver.method))
            )
        elif (*_span(each), each.symbol) not in followed:
            steps.append((distance, each))
    return steps


def _definitions(reader: Reader, ids: Collection[str]) -> dict[str, str]:
    """Return where variables and functions are defined, by node id; a variable where it is first assigned."""
    named: dict[str, Any] = {"node_id": sorted(ids)} if len(ids) <= MAX_ID_LOOKUPS else {}
    query = Query(
        f"SELECT n.node_id, n.path, coalesce(n.line, {FIRST_LINE}) AS line FROM n"
        " LEFT JOIN e ON e.dst_node_id = n.node_id AND e.path = n.path GROUP BY n.node_id, n.path, n.line",
        {"n": nodes((*VARIABLES, "FUNCTION"), **named), "e": edges(("DEFINES_BINDING",))},
    )
    return {node: place(path, line) for node, path, line in reader.rows(query)} if ids else {}


def _span(flow: ValueFlow) -> tuple[str, int | None, int | None]:
    return flow.path, flow.bstart, flow.bend


def start_level(reader: Reader, symbol: Symbol, direction: Direction) -> list[ValueFlow]:
    """Return where the values of a variable originate, or where it gets them."""
    start = start_flows if direction == "to" else start_origins
    return start(reader, symbol.ids, symbol.symbol)


def trace_flows(
    reader: Reader,
    level: Sequence[ValueFlow],
    depth: int,
    direction: Direction,
    *,
    returns: bool,
    most: int = MAX_REACHED,
) -> tuple[list[tuple[int, ValueFlow]], bool]:
    """Return the places that values reach or come from with their depths, and whether these are all.

    The search stops at the depth where it has more than `most` places.
    """
    follow = follow_flows if direction == "to" else follow_origins
    known = {each.state for each in level}
    # One entry per place, at its smallest depth.
    places: dict[tuple[str, str, str, int | None], tuple[int, ValueFlow]] = {}
    for distance in range(1, depth + 1):
        reached = follow(reader, level, returns=returns)
        for each in reached:
            places.setdefault((each.relation, each.symbol_id, each.path, each.bstart), (distance, each))
        # A variable that is reached in several ways is expanded with the highest confidence.
        new: dict[str, ValueFlow] = {}
        for each in sorted(reached, key=lambda flow: -flow.confidence):
            if each.state is not None and each.state not in known:
                new.setdefault(each.state, each)
        known |= new.keys()
        level = list(new.values())
        if not level or len(places) > most:
            break
    return sorted(places.values(), key=_order), not level or len(places) <= most


def flow_path(reader: Reader, start: Symbol, end: Symbol, depth: int, columns: tuple[str, ...]) -> VerbResult:
    """Find the shortest flow from one variable to another; a function stands for its parameters."""
    level = [
        flow
        for node, name in _variables(reader, start).items()
        for flow in start_flows(reader, (node,), name)
    ]
    wanted = _variables(reader, end)
    previous: dict[str, ValueFlow] = {}
    known = {each.state for each in level}
    for _ in range(depth):
        received = [
            each
            for each in follow_flows(reader, level)
            if each.relation != "REACHES" and each.state is not None
        ]
        received.sort(key=lambda flow: (-flow.confidence, flow.symbol, flow.path, flow.line or 0))
        for each in received:
            if each.symbol_id in wanted:
                return rows_result(columns, _path_rows(each, previous))
        level = []
        for each in received:
            if each.state not in known and each.state is not None:
                known.add(each.state)
                previous[each.state] = each
                level.append(each)
        if not level:
            break
    ends = f"from {start.symbol} to {end.symbol}"
    reason = (
        f"unknown whether a value flows {ends}: not in up to {depth} steps; use a larger --depth"
        if level
        else f"unknown whether a value flows {ends}: no path is known"
    )
    return rows_result(columns, (), (reason, NOTE))


def _variables(reader: Reader, symbol: Symbol) -> dict[str, str]:
    if symbol.kind == "FUNCTION":
        return parameters(reader, symbol)
    if symbol.kind not in VARIABLES:
        raise UsageError(f"{symbol.symbol} is not a variable or function", "name a variable or a function")
    return dict.fromkeys(symbol.ids, symbol.symbol)


def _path_rows(last: ValueFlow, previous: dict[str, ValueFlow]) -> list[dict[str, Any]]:
    """Return the rows of the path that ends with a step, from its first step."""
    steps = [last]
    while (before := previous.get(steps[0].source)) is not None:
        steps.insert(0, before)
    return [_row(each, number) for number, each in enumerate(steps, start=1)]


def _row(flow: ValueFlow, depth: int) -> dict[str, Any]:
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


def _order(placed: tuple[int, ValueFlow]) -> tuple[int, str, int, int, str, str]:
    distance, flow = placed
    return distance, flow.path, flow.bstart or 0, RELATIONS.index(flow.relation), flow.symbol, flow.symbol_id
