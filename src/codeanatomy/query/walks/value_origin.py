"""Follow values one step back: from variables to the expressions they get, and to the variables used there.

    level = start_origins(reader, parameter_ids, "shop.paths.values.keep.value")
    follow_origins(reader, level)     # [ValueFlow("PASSES_TO", ...), ValueFlow("REACHES", ...), ...]

This is `value_flow` in the opposite direction, with the same steps: a value comes from A in one step exactly
if it flows from A in one step. A parameter gets the arguments of calls (PASSES_TO backwards), a definition
event the whole right side of its assignment (COPIES), an attribute that of every assignment to it, and with
`returns` a function the whole expressions of its return statements (RETURNED). The value of such an
expression is that of the definitions that reach it (REACHES), of the attribute or variable of another module
that it names (REFERS_TO), or of the functions that it calls (CALLS); another expression is an end.

Tests: `tests/unit/query/test_value_origin.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import structs

from codeanatomy.catalog.spec import Column
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, edges, nodes
from codeanatomy.query.walks.call_values import SPAN_COLUMNS, returning_calls, value_parts
from codeanatomy.query.walks.enclosing import CALLER_KINDS, innermost_sql
from codeanatomy.query.walks.reachability import edges_at
from codeanatomy.query.walks.value_flow import (
    ASSIGNING,
    ValueFlow,
    VariableUse,
    enclosing,
    flows_at,
    numbered_places,
    paths_of,
    place_flow,
    places,
    start_flows,
)

# Expressions that may have the value a function returns; `Attribute` is a property, or a variable.
CALLING = ("Call", "Attribute", "Subscript", "Await")
# Ids of what gets arguments: parameters, and the fields of a dataclass or its like.
RECEIVERS = ("parameter:", "binding:")
TARGET_COLUMNS = (
    Column("state", "string", "State of the flow."),
    Column("node_id", "string", "Syntax node of the target, if known."),
    *SPAN_COLUMNS[1:],
    Column("confidence", "double", "Confidence that it sets the variable."),
)


def start_origins(reader: Reader, ids: Collection[str], name: str) -> list[ValueFlow]:
    """Return where a variable gets values: a parameter at entry, others at each assignment."""
    level = start_flows(reader, ids, name)
    if any(each.symbol_id.startswith("parameter:") for each in level):
        return level
    # An attribute is also assigned where no definition event is.
    events = [each for each in level if each.state != each.symbol_id]
    bound = Query("SELECT b.node_id, b.repo_id FROM b", {"b": nodes(("BINDING",), node_id=tuple(ids))})
    return [
        *events,
        *(
            ValueFlow("", name, "BINDING", node, "", None, None, None, name, 1.0, None, repo_id, node, "")
            for node, repo_id in sorted(reader.rows(bound))
        ),
    ]


def follow_origins(reader: Reader, level: Sequence[ValueFlow], *, returns: bool = False) -> list[ValueFlow]:
    """Return the expressions whose values a level gets, and the variables whose values these have."""
    gets = _deduplicate(
        [
            *_arguments(reader, level),
            *_right_sides(reader, level),
            *(_return_values(reader, level) if returns else ()),
        ]
    )
    if not gets:
        return []
    gets = _narrow(reader, gets)
    around = enclosing(reader, gets)
    syntax = _syntax(reader, gets)
    origins = [
        *_reaching(reader, _select(gets, syntax, ("Name",))),
        *_named(reader, _select(gets, syntax, ("Name", "Attribute"))),
        *_called(reader, _select(gets, syntax, CALLING), returns, has_await="Await" in syntax.values()),
    ]
    return [
        *flows_at(gets, around),
        *(
            place_flow(gets[at], relation, name, kind, node, state, around[at], method, confidence, edge_id)
            for at, relation, name, kind, node, state, confidence, method, edge_id in origins
        ),
    ]


def _narrow(reader: Reader, gets: Sequence[VariableUse]) -> list[VariableUse]:
    """Replace expressions by the parts whose values they have."""
    parts = value_parts(reader, places(gets).rows, paths_of(gets))
    return [
        structs.replace(get, bstart=bstart, bend=bend, line=line)
        for at, get in enumerate(gets)
        for bstart, bend, line in parts.get(at, [(get.bstart, get.bend, get.line)])
    ]


def _syntax(reader: Reader, gets: Sequence[VariableUse]) -> dict[int, str]:
    """Return the kinds of expressions, by number, of those whose values may be followed further."""
    query = Query(
        "SELECT h.n, k.subkind FROM h JOIN k ON k.file_id = h.file_id AND k.bstart = h.bstart"
        " AND k.bend = h.bend",
        {
            "h": places(gets),
            "k": nodes(("AST_NODE",), subkind=("Name", *CALLING), path=paths_of(gets)),
        },
    )
    return dict(reader.rows(query))


def _select(
    gets: Sequence[VariableUse], syntax: Mapping[int, str], kinds: Collection[str]
) -> dict[int, VariableUse]:
    return {at: get for at, get in enumerate(gets) if syntax.get(at) in kinds}


def _arguments(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    """Return the arguments that parameters and fields get."""
    parameters = {each.symbol_id: each for each in level if each.symbol_id.startswith(RECEIVERS)}
    query = Query(
        "SELECT e.dst_node_id, e.repo_id, e.owner_file_id, e.path, e.bstart, e.bend, e.line, e.confidence,"
        " e.resolution_method, e.edge_id FROM e WHERE e.bstart IS NOT NULL",
        {"e": edges_at(tuple(parameters), ("PASSES_TO",), "dst")},
        order=("edge_id",),
    )
    return (
        [_get("PASSES_TO", parameters[row[0]], row[1:]) for row in reader.rows(query)] if parameters else []
    )


def _right_sides(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    """Return the right sides of the assignments that set variables and attributes."""
    variables = {
        each.state: each for each in level if each.state and not each.symbol_id.startswith("parameter:")
    }
    targets = [*_named_targets(reader, variables), *_attribute_targets(reader, variables)]
    if not targets:
        return []
    paths = sorted({path for path, _ in targets})
    query = Query(
        "SELECT h.state, v.repo_id, v.owner_file_id, v.path, v.bstart, v.bend, v.line, h.confidence FROM h"
        " JOIN t ON t.owner_file_id = h.file_id AND t.bstart = h.bstart AND t.bend = h.bend"
        " AND (h.node_id IS NULL OR h.node_id = t.dst_node_id) JOIN k ON k.node_id = t.src_node_id"
        " JOIN v ON v.src_node_id = k.node_id",
        {
            "h": InlineRows(TARGET_COLUMNS, [row for _, row in targets]),
            "t": edges(("AST_PARENT_OF",), role=("target", "targets"), path=paths),
            "k": nodes(("AST_NODE",), subkind=ASSIGNING, path=paths),
            "v": edges(("AST_PARENT_OF",), role=("value",), path=paths),
        },
        order=("state", "path", "bstart", "confidence"),
    )
    return [_get("COPIES", variables[row[0]], (*row[1:], "assignment", None)) for row in reader.rows(query)]


def _named_targets(reader: Reader, states: Collection[str]) -> list[tuple[str, Row]]:
    """Return the paths and spans of definition events, as rows of targets."""
    events = [state for state in states if state.startswith("event:")]
    query = Query(
        "SELECT d.path, d.node_id, d.file_id, d.bstart, d.bend FROM d WHERE d.bstart IS NOT NULL",
        {"d": nodes(("DEF_EVENT",), node_id=events)},
    )
    rows = reader.rows(query) if events else ()
    return [(path, (event, None, *span, 1.0)) for path, event, *span in rows]


def _attribute_targets(reader: Reader, states: Collection[str]) -> list[tuple[str, Row]]:
    """Return the paths and syntax nodes of attributes that are assigned, as rows of targets."""
    bindings = [state for state in states if state.startswith("binding:")]
    assigned = edges_at(bindings, ("DEFINES_BINDING",), "dst")
    of_attributes = "left(e.src_node_id, 14) = 'attribute_ref:'"
    where = Query(f"SELECT DISTINCT e.path FROM e WHERE {of_attributes}", {"e": assigned})
    paths = [row[0] for row in reader.rows(where)] if bindings else []
    query = Query(
        "SELECT e.path, e.dst_node_id, s.dst_node_id, a.file_id, a.bstart, a.bend, e.confidence FROM e"
        f" JOIN s ON s.src_node_id = e.src_node_id JOIN a ON a.node_id = s.dst_node_id WHERE {of_attributes}",
        {
            "e": assigned,
            "s": edges(("SYNTAX_OF",), path=paths),
            "a": nodes(("AST_NODE",), subkind=("Attribute",), path=paths),
        },
    )
    return [(row[0], row[1:]) for row in reader.rows(query)] if paths else []


def _return_values(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    """Return the whole expressions that functions return."""
    functions = {each.state: each for each in level if each.state and each.state.startswith("function:")}
    wanted = nodes(("FUNCTION",), node_id=tuple(functions))
    paths = (
        [row[0] for row in reader.rows(Query("SELECT DISTINCT f.path FROM f", {"f": wanted}))]
        if functions
        else []
    )
    query = Query(
        "SELECT f.node_id, v.repo_id, v.owner_file_id, v.path, v.bstart, v.bend, v.line"
        f" FROM ({innermost_sql('k', 'node_id', file='file_id')}) AS i JOIN f ON f.node_id = i.inner_id"
        " JOIN v ON v.src_node_id = i.node_id",
        {
            "f": wanted,
            "d": nodes(CALLER_KINDS, path=paths),
            "k": nodes(("AST_NODE",), subkind=("Return",), path=paths),
            "v": edges(("AST_PARENT_OF",), role=("value",), path=paths),
        },
        order=("path", "bstart"),
    )
    return [
        _get("RETURNED", functions[row[0]], (*row[1:], 1.0, "return", None))
        for row in (reader.rows(query) if paths else ())
    ]


def _get(relation: str, flow: ValueFlow, row: Sequence[Any]) -> VariableUse:
    repo_id, file_id, path, bstart, bend, line, confidence, method, edge_id = row
    lowest = min(confidence, flow.confidence)
    return VariableUse(flow, relation, repo_id, file_id, path, bstart, bend, line, lowest, method, edge_id)


def _deduplicate(gets: Sequence[VariableUse]) -> list[VariableUse]:
    """Keep one entry per variable and span: that of the highest confidence, ties broken by a fixed order."""
    kept: dict[tuple[str, str, int, int], VariableUse] = {}
    ordered = sorted(
        gets,
        key=lambda get: (
            get.file_id,
            get.bstart,
            -get.confidence,
            get.bend,
            get.flow.state,
            get.edge_id or "",
        ),
    )
    for get in ordered:
        kept.setdefault((get.flow.symbol_id, get.file_id, get.bstart, get.bend), get)
    return list(kept.values())


def _reaching(reader: Reader, gets: Mapping[int, VariableUse]) -> list[Row]:
    """Return the definition events that reach the expressions."""
    if not gets:
        return []
    paths = paths_of(gets.values())
    query = Query(
        "SELECT h.n, e.src_node_id, e.confidence, coalesce(e.resolution_method, e.rule_name), e.edge_id"
        " FROM h JOIN e ON e.owner_file_id = h.file_id AND e.bstart = h.bstart AND e.bend = h.bend",
        {"h": numbered_places(gets), "e": edges(("REACHES",), path=paths)},
        order=("n", "edge_id"),
    )
    rows = reader.rows(query)
    variables = _variables_of_events(reader, sorted({row[1] for row in rows}), paths)
    return [
        (at, "REACHES", *variables[event], event, confidence, method, edge_id)
        for at, event, confidence, method, edge_id in rows
        if event in variables
    ]


def _variables_of_events(
    reader: Reader, events: Sequence[str], paths: Sequence[str]
) -> dict[str, tuple[str, str, str]]:
    """Return name, kind and id of the variable that each definition event of some files sets."""
    if not events:
        return {}
    bound = Query(
        "SELECT e.src_node_id, b.qualname, b.node_kind, b.node_id FROM e JOIN b ON b.node_id = e.dst_node_id",
        {
            "e": edges(("EVENT_OF",), src_node_id=events, path=paths),
            "b": nodes(("BINDING",), path=paths),
        },
    )
    entries = Query(
        "SELECT d.node_id, p.qualname, p.node_kind, p.node_id FROM d JOIN p ON p.file_id = d.file_id"
        " AND p.bstart = d.bstart",
        {
            "d": nodes(("DEF_EVENT",), node_id=events, path=paths),
            "p": nodes(("PARAMETER",), path=paths),
        },
    )
    rows = [*reader.rows(bound), *reader.rows(entries)]
    return {event: (name, kind, node) for event, name, kind, node in rows}


def _named(reader: Reader, gets: Mapping[int, VariableUse]) -> list[Row]:
    """Return the attributes and variables of other modules that the expressions name.

    A reference to an attribute has the span of its name, which ends where the whole expression ends.
    """
    if not gets:
        return []
    paths = paths_of(gets.values())
    query = Query(
        "SELECT h.n, e.dst_node_id, e.confidence, e.resolution_method, e.edge_id FROM h JOIN e"
        " ON e.owner_file_id = h.file_id AND e.bend = h.bend AND (e.bstart = h.bstart OR"
        " (e.bstart > h.bstart AND left(e.src_node_id, 14) = 'attribute_ref:'))"
        " JOIN r ON r.node_id = e.src_node_id WHERE left(e.dst_node_id, 8) = 'binding:'",
        {
            "h": numbered_places(gets),
            "e": edges(("REFERS_TO",), path=paths),
            "r": nodes(("NAME_REF", "ATTRIBUTE_REF"), subkind=("load",), path=paths),
        },
        order=("n", "edge_id"),
    )
    rows = reader.rows(query)
    bindings = sorted({row[1] for row in rows})
    states = _states_of_bindings(reader, bindings) if bindings else {}
    return [
        (at, "REFERS_TO", name, "BINDING", binding, state, confidence, method, edge_id)
        for at, binding, confidence, method, edge_id in rows
        for name, state in states.get(binding, ())
    ]


def _states_of_bindings(reader: Reader, bindings: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the name of each variable with its definition events, and with itself for its attributes."""
    bound = nodes(("BINDING",), node_id=bindings)
    names: dict[str, str] = dict(reader.rows(Query("SELECT b.node_id, b.qualname FROM b", {"b": bound})))
    events = Query(
        "SELECT e.dst_node_id, d.node_id FROM e JOIN d ON d.node_id = e.src_node_id",
        {"e": edges_at(bindings, ("EVENT_OF",), "dst"), "d": nodes(("DEF_EVENT",))},
        order=("dst_node_id", "node_id"),
    )
    states = {node: [(name, node)] for node, name in names.items()}
    for binding, event in reader.rows(events):
        states[binding].append((names[binding], event))
    return states


def _called(reader: Reader, gets: Mapping[int, VariableUse], returns: bool, *, has_await: bool) -> list[Row]:
    """Return the functions whose values the expressions have; they are followed with `returns`."""
    if not gets:
        return []
    rows = returning_calls(reader, numbered_places(gets), paths_of(gets.values()), has_await=has_await)
    return [
        (at, "CALLS", name, "FUNCTION", node, node if returns else None, confidence, method, edge_id)
        for at, node, name, confidence, method, edge_id in rows
    ]
