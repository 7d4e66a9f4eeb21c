"""Show the evidence and the rule behind an edge, or behind all edges from A to B (`explain`).

    explain(reader, start=resolve(reader, "shop.cart.sell"), end=resolve(reader, "Price.with_tax"))
    # CALL_GRAPH   shop.cart.sell -> shop.money.Price.with_tax   rule call_graph, 0.9   values agrees
    # CALLS        the call in line 47 -> ...                    rule call, 0.9         values agrees, ...

Edges from A to B start at A or at a node inside of it: a call, a name, an import, an argument. The evidence
of witnesses is that of `relations_v1`; an edge that needed no resolution, such as HAS_PARAMETER, has no
evidence but the source itself. `amount` is the number of alternatives of an ambiguous edge.

Tests: `tests/unit/query/test_verb_explain.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Slice, nodes
from codeanatomy.query.symbols import VARIABLES
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, PLACE, defined_sql, innermost_sql, spans_sql

COLUMNS = (
    "relation",
    "symbol",
    "kind",
    "target",
    "path",
    "line",
    "source",
    "defined",
    "inside",
    "confidence",
    "method",
    "origin",
    "rule",
    "role",
    "evidence",
    "group_id",
    "amount",
    "detail",
    "repo_id",
    "edge_id",
)
# Kinds of edges that may be ambiguous; alternatives at one place share an ambiguity group.
AMBIGUOUS = (
    "CALLS",
    "CALLS_NAME",
    "DEFINES_BINDING",
    "IMPORTS_NAME",
    "INHERITS",
    "INSTANTIATES",
    "PASSES_TO",
    "REFERS_TO",
)
# Descriptions of the resolution methods.
METHODS = {
    "scope": "resolved by the scope rules of the language",
    "import": "resolved by following imports",
    "star_import": "resolved by following a star import",
    "builtin": "a builtin, since no enclosing scope defines the name",
    "mro": "resolved by the method resolution order",
    "self": "resolved on the class that `self` is an instance of",
    "values": "resolved by following values to this place",
    "callback": "called by a builtin that receives it as an argument",
    "annotation": "assumed from an annotation, which is not checked at run time",
    "calls": "all calls between the two functions, with the highest of their confidences",
    "syntax": "stated by the syntax",
    "scip": "reported by a SCIP index",
    "pyrefly": "reported by the type checker",
}
NO_EVIDENCE = "the source itself; nothing had to be resolved"
PLACE_COLUMNS = tuple(map(catalog.table("cpg_edges").column, PLACE))


class _Edge(Struct, frozen=True):
    """An edge; the fields are columns of `cpg_edges`."""

    edge_id: str
    edge_kind: str
    src_node_id: str
    dst_node_id: str
    role: str | None
    owner_file_id: str | None
    path: str | None
    bstart: int | None
    bend: int | None
    line: int | None
    origin: str
    resolution_method: str | None
    confidence: float
    ambiguity_group_id: str | None
    rule_name: str
    repo_id: str


# File, first byte and end of the fact that an edge states.
_Place: TypeAlias = tuple[str | None, int | None, int | None]
FIELDS = ", ".join(f"e.{name}" for name in _Edge.__struct_fields__)


def explain(
    reader: Reader, *, edge_id: str | None = None, start: Symbol | None = None, end: Symbol | None = None
) -> VerbResult:
    """Explain an edge by its id, or all edges from one symbol to another."""
    if edge_id is not None:
        edges = _edge_by_id(reader, edge_id)
        return rows_result(COLUMNS, _rows(reader, edges))
    if start is None or end is None:
        raise UsageError("explain needs an edge or two symbols", "name an edge id, or two symbols")
    edges = _edges_between(reader, start, end)
    if edges:
        return rows_result(COLUMNS, _rows(reader, edges))
    reverse = len(_edges_between(reader, end, start))
    note = f"no edge leads from {start.symbol} to {end.symbol}"
    return rows_result(
        COLUMNS, (), (f"{note}; {reverse:,} lead in the opposite direction" if reverse else note,)
    )


def _edge_by_id(reader: Reader, edge_id: str) -> list[_Edge]:
    # The source node is in the id, and this copy is sorted by it.
    query = Query(f"SELECT {FIELDS} FROM e", {"e": Slice("cpg_edges_by_src", edge_id=(edge_id,))})
    edges = [_Edge(*row) for row in reader.rows(query)]
    if not edges:
        raise UsageError(
            f"no edge has the id {edge_id[:100]!r}",
            "name two symbols, or an edge_id from the output of `explain`",
        )
    return edges


def _edges_between(reader: Reader, start: Symbol, end: Symbol) -> list[_Edge]:
    """Return the edges that lead to a symbol from another one, or from a node inside of it."""
    arriving = {end.kind, *VARIABLES} if end.kind in VARIABLES else {end.kind, "BINDING"}
    kinds = [name for name, kind in EDGE_KINDS.items() if any(arriving & set(ends.dst) for ends in kind.ends)]
    query = Query(
        f"SELECT DISTINCT {FIELDS} FROM e LEFT JOIN ({spans_sql()}) AS i ON i.file_id = e.owner_file_id"
        " AND i.begins <= e.bstart AND i.ends >= e.bend"
        " LEFT JOIN s ON s.node_id = e.src_node_id WHERE i.node_id IS NOT NULL OR s.node_id IS NOT NULL",
        {
            "e": Slice("cpg_edges", edge_kind=kinds, dst_node_id=end.ids),
            "d": nodes(ENCLOSING_KINDS, start.repo_id, node_id=start.ids),
            "s": nodes((start.kind, "BINDING"), start.repo_id, node_id=start.ids),
        },
        order=("path", "bstart", "edge_kind", "edge_id"),
    )
    return [_Edge(*row) for row in reader.rows(query)]


def _rows(reader: Reader, edges: Sequence[_Edge]) -> list[dict[str, Any]]:
    names = _end_names(reader, edges)
    evidence = _evidence(reader, edges)
    groups = _group_sizes(reader, edges)
    enclosing = _enclosing_names(reader, edges)
    return [
        {
            "relation": edge.edge_kind,
            "symbol": names[edge.src_node_id][0] or enclosing.get(_place_of(edge)),
            "kind": names[edge.src_node_id][1],
            "target": names[edge.dst_node_id][0],
            "path": edge.path,
            "line": edge.line,
            "defined": names[edge.dst_node_id][2],
            "inside": enclosing.get(_place_of(edge)),
            "confidence": edge.confidence,
            "method": edge.resolution_method,
            "origin": edge.origin,
            "rule": edge.rule_name,
            "role": edge.role,
            "evidence": evidence.get(
                (edge.edge_kind, edge.src_node_id, edge.dst_node_id, edge.bstart, edge.bend), NO_EVIDENCE
            ),
            "group_id": edge.ambiguity_group_id,
            "amount": groups.get((edge.ambiguity_group_id, edge.src_node_id)),
            "detail": describe_edge(edge.edge_kind, edge.resolution_method),
            "repo_id": edge.repo_id,
            "edge_id": edge.edge_id,
        }
        for edge in edges
    ]


def describe_edge(kind: str, method: str | None) -> str:
    """Describe an edge kind and how the target was resolved.

    >>> describe_edge("OVERRIDES", "mro").partition(" Target: ")[2]
    'resolved by the method resolution order.'
    """
    doc = EDGE_KINDS[kind].doc
    return f"{doc} Target: {METHODS.get(method, method)}." if method else doc


def _end_names(reader: Reader, edges: Sequence[_Edge]) -> dict[str, tuple[str | None, str, str | None]]:
    """Return the name, if any, the kind and the location of both ends of the edges, by node id."""
    ids = sorted({node for edge in edges for node in (edge.src_node_id, edge.dst_node_id)})
    # Only the kinds of these id prefixes are read: syntax nodes are many.
    prefixes = {node.partition(":")[0] for node in ids}
    kinds = [name for name, kind in NODE_KINDS.items() if kind.prefix in prefixes]
    query = Query(
        f"SELECT n.node_id, coalesce(n.qualname, n.name) AS name, n.node_kind, {defined_sql('n')} FROM n",
        {"n": nodes(kinds, node_id=ids)},
    )
    return {node: (name, kind, defined) for node, name, kind, defined in reader.rows(query)}


def _evidence(reader: Reader, edges: Sequence[_Edge]) -> dict[tuple[Any, ...], str]:
    """Return the evidence of the witnesses, by kind, ends and span of the relation."""
    query = Query(
        "SELECT * FROM r",
        {
            "r": Slice(
                "relations_v1",
                owner_file_id=sorted({edge.owner_file_id for edge in edges if edge.owner_file_id}),
                src_id=sorted({edge.src_node_id for edge in edges}),
                dst_id=sorted({edge.dst_node_id for edge in edges}),
                relation_kind=sorted({edge.edge_kind for edge in edges}),
            )
        },
        # Of several relations with the same kind, ends and span the last one is used.
        order=("rule_name", "role", "ordinal", "reason"),
        columns=("relation_kind", "src_id", "dst_id", "bstart", "bend", "evidence"),
    )
    return {tuple(key): _describe_witnesses(witnesses or ()) for *key, witnesses in reader.rows(query)}


def _describe_witnesses(witnesses: Sequence[Any]) -> str:
    """List the witnesses and whether each agrees; one with several rows is listed once."""
    parts = (
        f"{each['witness']} {'disagrees' if each['agrees'] is False else 'agrees'}" for each in witnesses
    )
    return ", ".join(dict.fromkeys(parts)) or "no witness is recorded"


def _group_sizes(reader: Reader, edges: Sequence[_Edge]) -> dict[tuple[str | None, str], int]:
    """Count alternatives by ambiguity group and source node; arguments share the group of their call."""
    ambiguous = [edge for edge in edges if edge.ambiguity_group_id]
    if not ambiguous:
        return {}
    query = Query(
        "SELECT e.ambiguity_group_id, e.src_node_id, count(DISTINCT e.dst_node_id) FROM e GROUP BY 1, 2",
        {
            "e": Slice(
                "cpg_edges",
                edge_kind=AMBIGUOUS,
                path=sorted({edge.path for edge in ambiguous if edge.path}),
                ambiguity_group_id=sorted(
                    {edge.ambiguity_group_id for edge in ambiguous if edge.ambiguity_group_id}
                ),
            )
        },
    )
    return {(group, node): count for group, node, count in reader.rows(query)}


def _enclosing_names(reader: Reader, edges: Sequence[_Edge]) -> dict[_Place, str]:
    """Return the name of the innermost definition around the place of each edge, by place."""
    places = [_place_of(edge) for edge in edges if edge.owner_file_id is not None]
    query = Query(
        f"SELECT u.*, d.qualname FROM ({innermost_sql('h', *PLACE)}) AS u JOIN d ON d.node_id = u.inner_id",
        {
            "h": InlineRows(PLACE_COLUMNS, list(dict.fromkeys(places))),
            "d": nodes(ENCLOSING_KINDS, file_id=sorted({file_id or "" for file_id, _, _ in places})),
        },
        columns=(*PLACE, "qualname"),
    )
    return {(file_id, begins, ends): name for file_id, begins, ends, name in reader.rows(query)}


def _place_of(edge: _Edge) -> _Place:
    return edge.owner_file_id, edge.bstart, edge.bend
