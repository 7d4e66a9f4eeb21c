"""Follow values one step: from variables to their uses, and to the variables that receive them there.

    level = start_flows(reader, parameter_ids, "shop.cart.Cart.checkout.pay")
    follow_flows(reader, level)     # [ValueFlow("REACHES", ...), ValueFlow("PASSES_TO", ...), ...]

A value is followed from a definition event (DEF_EVENT) along REACHES; that of an attribute, or of a variable
in another module, backwards along REFERS_TO, from the variable as a whole. Uses, arguments and syntax nodes
are joined by equal spans. The definition event of a parameter at the entry of its function starts at the same
byte as the parameter. With `returns` a function stands for the value that it returns, which is used at its
calls (`call_values`). `value_origin` has the opposite direction.

Tests: `tests/unit/query/test_verb_flows.py`, `tests/unit/query/test_value_origin.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from codeanatomy.catalog.spec import Column
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, edges, nodes
from codeanatomy.query.walks.call_values import SPAN_COLUMNS, returned_values, whole_expressions
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, innermost_sql
from codeanatomy.query.walks.reachability import edges_at

# Statements and expressions that assign their whole value to their targets.
ASSIGNING = ("Assign", "AnnAssign", "NamedExpr")


class ValueFlow(Struct, frozen=True):
    """A place that a value flows to or comes from, and the variable that holds it there."""

    relation: str
    symbol: str
    kind: str
    symbol_id: str
    path: str
    line: int | None
    bstart: int | None
    inside: str | None
    # The variable one step nearer to the start.
    via: str
    # Lowest confidence of the steps.
    confidence: float
    method: str | None
    repo_id: str
    # Node to continue from: a definition event, or a variable as a whole; None for a mere use.
    state: str | None
    # `state` of the previous step.
    source: str
    # Byte after the span of the place.
    bend: int | None = None
    # The edge behind the relation; None for COPIES and RETURNED, which follow from the syntax.
    edge_id: str | None = None


class VariableUse(Struct, frozen=True):
    """A use of a variable, with its span."""

    flow: ValueFlow
    relation: str
    repo_id: str
    file_id: str
    path: str
    bstart: int
    bend: int
    line: int | None
    confidence: float
    method: str | None
    edge_id: str | None


def start_flows(reader: Reader, ids: Collection[str], name: str) -> list[ValueFlow]:
    """Return where the values of a variable originate: a parameter at entry, others at each assignment."""
    entries = [node for node in ids if node.startswith("parameter:")]
    if entries:
        query = Query(
            "SELECT p.node_id AS variable, d.node_id AS state, p.repo_id FROM p JOIN d"
            " ON d.file_id = p.file_id AND d.bstart = p.bstart",
            {"p": nodes(("PARAMETER",), node_id=entries), "d": nodes(("DEF_EVENT",))},
            order=("variable", "state"),
        )
        rows = [(node, "PARAMETER", state, repo_id) for node, state, repo_id in reader.rows(query)]
    else:
        bindings = tuple(ids)
        query = Query(
            "SELECT b.node_id, v.event, b.repo_id FROM b LEFT JOIN"
            " (SELECT r.src_node_id AS other, r.dst_node_id AS own FROM r UNION ALL"
            " SELECT node_id, node_id FROM b) o ON o.own = b.node_id"
            " LEFT JOIN (SELECT e.dst_node_id AS other, d.node_id AS event FROM e JOIN d"
            " ON d.node_id = e.src_node_id) v ON v.other = o.other",
            {
                "b": nodes(("BINDING",), node_id=bindings),
                "r": edges(("BINDING_RESOLVES_TO",), dst_node_id=bindings),
                "e": edges(("EVENT_OF",)),
                "d": nodes(("DEF_EVENT",)),
            },
        )
        events = sorted(reader.rows(query), key=lambda row: (row[0], row[1] or ""))
        rows = [(node, "BINDING", state or node, repo_id) for node, state, repo_id in events]
    return [
        ValueFlow("", name, kind, node, "", None, None, None, name, 1.0, None, repo_id, state, "")
        for node, kind, state, repo_id in rows
    ]


def parameters(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """Return the parameters of a function in order: qualified names by node id."""
    query = Query(
        "SELECT p.node_id, p.qualname, e.ordinal FROM e JOIN p ON p.node_id = e.dst_node_id",
        {
            "e": edges(("HAS_PARAMETER",), src_node_id=symbol.ids),
            "p": nodes(("PARAMETER",), symbol.repo_id),
        },
        order=("ordinal", "node_id"),
        columns=("node_id", "qualname"),
    )
    return dict(reader.rows(query))


def follow_flows(reader: Reader, level: Sequence[ValueFlow], *, returns: bool = False) -> list[ValueFlow]:
    """Return where the values of a level are used, and which variables receive them there."""
    called = _calling_uses(reader, level) if returns else []
    uses = _deduplicate([*_reached_uses(reader, level), *_referring_uses(reader, level), *called])
    if not uses:
        return []
    around = enclosing(reader, uses)
    whole = InlineRows(SPAN_COLUMNS, whole_expressions(reader, places(uses).rows, paths_of(uses)))
    return [
        *flows_at(uses, around),
        *_passed(reader, uses, whole, around),
        *_copied(reader, uses, whole, around, returns),
    ]


def _reached_uses(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    states = {each.state: each for each in level if each.state and each.state.startswith("event:")}
    query = Query(
        "SELECT e.src_node_id, e.repo_id, e.owner_file_id, e.path, e.bstart, e.bend, e.line, e.confidence,"
        " coalesce(e.resolution_method, e.rule_name), e.edge_id FROM e WHERE e.bstart IS NOT NULL",
        {"e": edges_at(tuple(states), ("REACHES",), "src")},
    )
    return [_use("REACHES", states[row[0]], row) for row in reader.rows(query)] if states else []


def _referring_uses(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    """Return uses that refer to the variable as a whole: attributes, and variables of other modules."""
    variables = {each.symbol_id: each for each in reversed(level) if each.symbol_id.startswith("binding:")}
    if not variables:
        return []
    named = edges_at(tuple(variables), ("REFERS_TO",), "dst")
    paths = [row[0] for row in reader.rows(Query("SELECT DISTINCT e.path FROM e", {"e": named}))]
    # The span of an attribute use is that of its syntax node: `cart.prices`, not `prices`; both end together.
    query = Query(
        "SELECT e.dst_node_id, e.repo_id, e.owner_file_id, e.path, coalesce(a.bstart, e.bstart), e.bend,"
        " e.line, e.confidence, e.resolution_method, e.edge_id FROM e JOIN n ON n.node_id = e.src_node_id"
        " LEFT JOIN a ON a.file_id = e.owner_file_id AND a.bend = e.bend AND n.node_kind = 'ATTRIBUTE_REF'",
        {
            "e": named,
            "n": nodes(("NAME_REF", "ATTRIBUTE_REF"), subkind=("load",), path=paths),
            "a": nodes(("AST_NODE",), subkind=("Attribute",), path=paths),
        },
    )
    return [_use("REFERS_TO", variables[row[0]], row) for row in reader.rows(query)] if paths else []


def _calling_uses(reader: Reader, level: Sequence[ValueFlow]) -> list[VariableUse]:
    """Return the calls of functions, whose value is the one that the function returns."""
    functions = {each.state: each for each in level if each.state and each.state.startswith("function:")}
    return [
        _use("CALLS", functions[row[0]], row)
        for row in returned_values(reader, function_ids=tuple(functions))
    ]


def _use(relation: str, flow: ValueFlow, row: Row) -> VariableUse:
    _, repo_id, file_id, path, bstart, bend, line, confidence, method, edge_id = row
    lowest = min(confidence, flow.confidence)
    return VariableUse(flow, relation, repo_id, file_id, path, bstart, bend, line, lowest, method, edge_id)


def _deduplicate(uses: Sequence[VariableUse]) -> list[VariableUse]:
    """Keep one use per variable and span: that of the highest confidence, ties broken by a fixed order."""
    kept: dict[tuple[str, str, int, int], VariableUse] = {}
    for use in sorted(uses, key=_use_order):
        kept.setdefault((use.flow.symbol_id, use.file_id, use.bstart, use.bend), use)
    return list(kept.values())


def _use_order(use: VariableUse) -> tuple[str | int | float, ...]:
    flow = use.flow
    place = (use.file_id, use.bstart, -use.confidence, flow.source, use.bend)
    return (*place, flow.state or "", flow.symbol_id, use.relation, use.method or "")


def enclosing(reader: Reader, uses: Sequence[VariableUse]) -> dict[int, Row]:
    """Return the name, kind and id of the innermost definition around each use."""
    query = Query(
        "SELECT u.n, d.qualname, d.node_kind, d.node_id"
        f" FROM ({innermost_sql('h', 'n', file='file_id')}) AS u JOIN d ON d.node_id = u.inner_id",
        {"h": places(uses), "d": nodes(ENCLOSING_KINDS, path=paths_of(uses))},
    )
    return {number: tuple(rest) for number, *rest in reader.rows(query)}


def _passed(
    reader: Reader, uses: Sequence[VariableUse], whole: InlineRows, around: dict[int, Row]
) -> list[ValueFlow]:
    """Return flows into parameters and fields, from uses whose value a whole argument has."""
    query = Query(
        "SELECT h.n, p.qualname, p.node_id AS variable, p.node_kind,"
        " CASE WHEN p.node_kind = 'BINDING' THEN p.node_id ELSE d.node_id END AS state, e.confidence,"
        " e.resolution_method, e.edge_id FROM h"
        " JOIN e ON e.owner_file_id = h.file_id AND e.bstart = h.bstart AND e.bend = h.bend"
        " JOIN p ON p.node_id = e.dst_node_id"
        " LEFT JOIN d ON d.file_id = p.file_id AND d.bstart = p.bstart",
        {
            "h": whole,
            "e": edges(("PASSES_TO",), path=paths_of(uses)),
            "p": nodes(("PARAMETER", "BINDING")),
            "d": nodes(("DEF_EVENT",)),
        },
        order=("n", "qualname", "variable", "state"),
    )
    return [
        place_flow(
            uses[number],
            "PASSES_TO",
            name,
            kind,
            node,
            state,
            around[number],
            method,
            confidence,
            edge_id,
        )
        for number, name, node, kind, state, confidence, method, edge_id in reader.rows(query)
    ]


def _copied(
    reader: Reader, uses: Sequence[VariableUse], whole: InlineRows, around: dict[int, Row], returns: bool
) -> list[ValueFlow]:
    """Return flows into assigned variables and out of functions that return the use, by the syntax tree."""
    paths = paths_of(uses)
    query = Query(
        "SELECT h.n, k.subkind, t.dst_node_id, t.owner_file_id, t.bstart, t.bend FROM h"
        " JOIN v ON v.owner_file_id = h.file_id AND v.bstart = h.bstart AND v.bend = h.bend"
        " JOIN k ON k.node_id = v.src_node_id LEFT JOIN t ON t.src_node_id = k.node_id",
        {
            "h": whole,
            "v": edges(("AST_PARENT_OF",), role=("value",), path=paths),
            "k": nodes(("AST_NODE",), subkind=(*ASSIGNING, "Return"), path=paths),
            "t": edges(("AST_PARENT_OF",), role=("target", "targets"), path=paths),
        },
        order=("n", "bstart", "dst_node_id", "subkind"),
    )
    returned: list[ValueFlow] = []
    targets: list[Row] = []
    for number, kind, *target in reader.rows(query):
        if kind == "Return":
            name, node_kind, node = around[number]
            state = node if returns else None
            returned.append(
                place_flow(uses[number], "RETURNED", name, node_kind, node, state, around[number], "return")
            )
        elif target[0] is not None:
            targets.append((number, *target))
    return [*returned, *_assigned(reader, uses, around, targets)] if targets else returned


def _assigned(
    reader: Reader, uses: Sequence[VariableUse], around: dict[int, Row], targets: Sequence[Row]
) -> list[ValueFlow]:
    """Return flows into the variables of assignment targets.

    A name is found by the definition event at its span, an attribute by its DEFINES_BINDING edge.
    """
    paths = paths_of(uses)
    columns = (SPAN_COLUMNS[0], Column("node_id", "string", "Syntax node of the target."), *SPAN_COLUMNS[1:])
    query = Query(
        "SELECT h.n, b.qualname, b.node_id, d.node_id AS state, CAST(1 AS DOUBLE) AS confidence FROM h"
        " JOIN d ON d.file_id = h.file_id AND d.bstart = h.bstart AND d.bend = h.bend"
        " JOIN o ON o.src_node_id = d.node_id JOIN b ON b.node_id = o.dst_node_id"
        " UNION SELECT h.n, b.qualname, b.node_id, b.node_id AS state, f.confidence FROM h"
        " JOIN s ON s.dst_node_id = h.node_id JOIN f ON f.src_node_id = s.src_node_id"
        " JOIN b ON b.node_id = f.dst_node_id WHERE left(s.src_node_id, 14) = 'attribute_ref:'",
        {
            "h": InlineRows(columns, targets),
            "d": nodes(("DEF_EVENT",), path=paths),
            "o": edges(("EVENT_OF",), path=paths),
            "s": edges(("SYNTAX_OF",), path=paths),
            "f": edges(("DEFINES_BINDING",), path=paths),
            "b": nodes(("BINDING",)),
        },
        order=("n", "qualname", "state"),
    )
    return [
        place_flow(
            uses[number], "COPIES", name, "BINDING", node, state, around[number], "assignment", confidence
        )
        for number, name, node, state, confidence in reader.rows(query)
    ]


def flows_at(uses: Sequence[VariableUse], around: Mapping[int, Row]) -> list[ValueFlow]:
    """Return uses as flows that lead to no other variable."""
    return [
        place_flow(
            use,
            use.relation,
            use.flow.symbol,
            use.flow.kind,
            use.flow.symbol_id,
            None,
            around[at],
            use.method,
            edge_id=use.edge_id,
        )
        for at, use in enumerate(uses)
    ]


def place_flow(
    use: VariableUse,
    relation: str,
    symbol: str,
    kind: str,
    node: str,
    state: str | None,
    around: Row,
    method: str | None,
    confidence: float = 1.0,
    edge_id: str | None = None,
) -> ValueFlow:
    """Return the flow of a value at a use."""
    return ValueFlow(
        relation,
        symbol,
        kind,
        node,
        use.path,
        use.line,
        use.bstart,
        around[0],
        use.flow.symbol,
        min(use.confidence, confidence),
        method,
        use.repo_id,
        state,
        use.flow.state or "",
        use.bend,
        edge_id,
    )


def places(uses: Sequence[VariableUse]) -> InlineRows:
    """Return the spans of uses as a relation, numbered from 0."""
    return numbered_places(dict(enumerate(uses)))


def numbered_places(uses: Mapping[int, VariableUse]) -> InlineRows:
    """Return the spans of uses as a relation, with their numbers."""
    rows: list[Row] = [(at, use.file_id, use.bstart, use.bend) for at, use in uses.items()]
    return InlineRows(SPAN_COLUMNS, rows)


def paths_of(uses: Iterable[VariableUse]) -> tuple[str, ...]:
    """Return the files of uses."""
    return tuple(sorted({use.path for use in uses}))
