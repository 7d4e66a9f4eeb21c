"""Arrange the flow of a value as steps with arrows between spans of the source.

    flow = variable_flow(reader, resolve(reader, "shop.paths.values.give.amount"), "to", depth=3)
    flow.steps[0].place          # FlowSpan("shop/paths/values.py", 96, 102): `amount` in `copied = amount`
    flow.steps[0].leads          # (REACHES: the value of `amount`, COPIES: assigned to `copied`)

A step is a place where a value is used. Its leads are what the graph knows there: whose value it is, and what
receives it. A lead has an arrow, which always points where the value goes. A step that leads nowhere has an
end instead: what is done with the value there, or what made it (`query.walks.flow_ends`).

Tests: `tests/unit/serve/test_flow_pages.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Row, nodes
from codeanatomy.query.verbs.flows import Direction, start_level, trace_flows
from codeanatomy.query.walks.flow_ends import FlowEnd, definition_ends, origin_ends, use_ends
from codeanatomy.query.walks.reachability import edges_at
from codeanatomy.query.walks.value_flow import ValueFlow

# Steps that are shown of one direction.
MAX_STEPS = 60
# Places after which the search stops.
MAX_PLACES = 500
RECEIVED = ("COPIES", "PASSES_TO", "RETURNED")
NOT_CALLED = FlowEnd("unknown", "no call of it is known where the value is used")


class FlowSpan(Struct, frozen=True, order=True):
    """A span in the source, in bytes."""

    path: str
    bstart: int
    bend: int

    @property
    def key(self) -> tuple[str, int, int]:
        """The span as a key of `flow_ends`."""
        return self.path, self.bstart, self.bend


class FlowLead(Struct, frozen=True):
    """One relation at a step: whose value it is, or what receives it."""

    relation: str
    symbol: str
    kind: str
    confidence: float
    method: str | None
    edge_id: str | None
    # The arrow; None if one of its ends has no place in the source.
    tail: FlowSpan | None
    head: FlowSpan | None
    # Why the variable is followed no further, if it is known.
    end: FlowEnd | None = None


class FlowStep(Struct, frozen=True):
    """A place where a value is used, nearest first."""

    depth: int
    place: FlowSpan
    line: int | None
    inside: str | None
    via: str
    leads: tuple[FlowLead, ...]
    # Why the value is followed no further from this place; None if it is.
    end: FlowEnd | None


class VariableFlow(Struct, frozen=True):
    """The steps of one direction."""

    direction: Direction
    steps: tuple[FlowStep, ...]
    # Number of steps, with those that are not shown; not complete if the search stopped before its depth.
    total: int
    complete: bool
    # Whether variables at the greatest depth may have further steps.
    deeper: bool
    # Where the variable itself is defined.
    starts: tuple[FlowSpan, ...]
    # Why nothing is known to set the variable, if so.
    end: FlowEnd | None


def variable_flow(reader: Reader, symbol: Symbol, direction: Direction, depth: int) -> VariableFlow:
    """Follow the value of a variable in one direction."""
    level = start_level(reader, symbol, direction)
    placed, complete = trace_flows(reader, level, depth, direction, returns=True, most=MAX_PLACES)
    groups: dict[FlowSpan, list[tuple[int, ValueFlow]]] = {}
    for distance, flow in placed:
        if flow.bstart is not None and flow.bend is not None:
            groups.setdefault(FlowSpan(flow.path, flow.bstart, flow.bend), []).append((distance, flow))
    shown = dict(list(groups.items())[:MAX_STEPS])
    started = {each.state for each in level if each.state}
    states = started.union(*({flow.state, flow.source} for group in shown.values() for _, flow in group)) - {
        None,
        "",
    }
    spans = _definition_spans(reader, sorted(state for state in states if state))
    expanded = {flow.source for _, flow in placed}
    ends = _ends(reader, direction, shown)
    unexpanded = {
        flow.state
        for group in shown.values()
        for distance, flow in group
        if flow.state and flow.state not in expanded and distance < depth
    }
    if direction == "from":
        variable_ends = _unset_ends(reader, unexpanded, spans)
    else:
        variable_ends = {state: NOT_CALLED for state in unexpanded if state.startswith("function:")}
    steps = [
        _step(place, group, direction, spans, ends.get(place), variable_ends)
        for place, group in shown.items()
    ]
    starts = sorted({span for state in started for span in spans.get(state, ())})
    unset = (
        definition_ends(reader, [span.key for span in starts]) if direction == "from" and not groups else {}
    )
    return VariableFlow(
        direction,
        tuple(steps),
        len(groups),
        complete,
        complete and any(distance == depth and flow.state is not None for distance, flow in placed),
        tuple(starts),
        next(iter(unset.values()), None),
    )


def _step(
    place: FlowSpan,
    group: Sequence[tuple[int, ValueFlow]],
    direction: Direction,
    spans: dict[str, list[FlowSpan]],
    end: FlowEnd | None,
    variable_ends: dict[str, FlowEnd],
) -> FlowStep:
    depth, flow = group[0]
    # What receives the value is named last, or first if values are followed back.
    ordered = sorted(group, key=lambda each: (each[1].relation in RECEIVED) == (direction == "to"))
    leads = [
        FlowLead(
            each.relation,
            each.symbol,
            each.kind,
            each.confidence,
            each.method,
            each.edge_id,
            *_arrow(place, each, direction, spans),
            variable_ends.get(each.state or ""),
        )
        for _, each in ordered
    ]
    # One variable may have several definitions that reach a place.
    unique = {(lead.relation, lead.symbol, lead.tail, lead.head): lead for lead in leads}
    return FlowStep(depth, place, flow.line, flow.inside, flow.via, tuple(unique.values()), end)


def _arrow(
    place: FlowSpan, flow: ValueFlow, direction: Direction, spans: dict[str, list[FlowSpan]]
) -> tuple[FlowSpan | None, FlowSpan | None]:
    """Return where the arrow of a lead begins and ends: at a variable's definition and at the place."""
    receives = flow.relation in RECEIVED
    is_new = receives == (direction == "to")
    definitions = spans.get((flow.state if is_new else flow.source) or "", [])
    # Of several assignments to an attribute that of this statement, else the first.
    before = [each for each in definitions if each.path == place.path and each.bend <= place.bstart]
    nearest = (before[-1] if before and receives else definitions[0]) if definitions else None
    return (place, nearest) if receives else (nearest, place)


def _ends(
    reader: Reader, direction: Direction, shown: dict[FlowSpan, list[tuple[int, ValueFlow]]]
) -> dict[FlowSpan, FlowEnd]:
    """Return why values are followed no further from places that have leads of one side only."""
    one_sided = [
        place
        for place, group in shown.items()
        if all((flow.relation in RECEIVED) != (direction == "to") for _, flow in group)
    ]
    find = use_ends if direction == "to" else origin_ends
    ends = find(reader, [place.key for place in one_sided])
    return {place: ends[place.key] for place in one_sided if place.key in ends}


def _unset_ends(
    reader: Reader, states: Iterable[str], spans: dict[str, list[FlowSpan]]
) -> dict[str, FlowEnd]:
    """Return what sets variables that get no whole value of an expression."""
    unset = {state: spans[state][0] for state in states if state in spans}
    ends = definition_ends(reader, [span.key for span in unset.values()])
    return {state: ends[span.key] for state, span in unset.items() if span.key in ends}


def _definition_spans(reader: Reader, states: Sequence[str]) -> dict[str, list[FlowSpan]]:
    """Return where the variables of states are defined: events, attributes that are assigned, functions."""
    spans: dict[str, list[FlowSpan]] = {}
    bindings = [state for state in states if state.startswith("binding:")]
    others = [state for state in states if not state.startswith("binding:")]
    defined: Iterable[Row] = ()
    if others:
        defined = reader.rows(
            Query(
                "SELECT n.node_id, n.path, n.bstart, n.bend FROM n WHERE n.bstart IS NOT NULL",
                {"n": nodes(("DEF_EVENT", "FUNCTION"), node_id=others)},
            )
        )
    assigned: Iterable[Row] = ()
    if bindings:
        assigned = reader.rows(
            Query(
                "SELECT e.dst_node_id, e.path, e.bstart, e.bend FROM e WHERE e.bstart IS NOT NULL",
                {"e": edges_at(bindings, ("DEFINES_BINDING",), "dst")},
                order=("path", "bstart"),
            )
        )
    for state, path, bstart, bend in (*defined, *assigned):
        spans.setdefault(state, []).append(FlowSpan(path, bstart, bend))
    return spans
