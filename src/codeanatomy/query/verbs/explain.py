"""`explain EDGE` or `explain A B`: the evidence and the rule behind an edge, or behind all from A to B.

    explain(reader, start=resolve(reader, "shop.cart.sell"), end=resolve(reader, "Price.with_tax"))
    # CALL_GRAPH   shop.cart.sell -> shop.money.Price.with_tax   rule call_graph, 0.9   values agrees
    # CALLS        the call in line 47 -> ...                    rule call, 0.9         values agrees, ...

From A to B are the edges that start at A and those that start at a place inside of it: a call, a name, an
import, an argument. What a witness says is told as `relations_v1` has it; an edge that nothing had to be
resolved for, such as HAS_PARAMETER, has no other evidence than the source itself. Of an ambiguous one,
`amount` is how many alternatives there are. Tests: `tests/unit/query/test_verb_explain.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Held, Query, Reader, Slice, nodes
from codeanatomy.query.symbols import VARIABLES
from codeanatomy.query.verbs.result import Found, held
from codeanatomy.query.walks.enclosing import AROUND, innermost, spans

COLUMNS = (
    "relation",
    "symbol",
    "kind",
    "target",
    "path",
    "line",
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
# Kinds that may have alternatives; those of one place share a group.
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
# How a target is found, in words.
METHODS = {
    "scope": "found by the scope rules of the language",
    "import": "found by following imports",
    "star_import": "found by following a star import",
    "builtin": "a builtin, for nothing nearer has the name",
    "mro": "found by the order of the base classes",
    "self": "found on the class that `self` is an instance of",
    "values": "found by following values to this place",
    "callback": "run by a builtin that gets it as an argument",
    "annotation": "guessed from an annotation, which nobody checks",
    "calls": "all calls of the one by the other together, as trusted as the best",
    "syntax": "it is written so",
    "scip": "said by a SCIP index",
    "pyrefly": "said by the type checker",
}
WITHOUT = "the source itself; nothing had to be resolved"
PLACE = tuple(
    catalog.table("cpg_edges").column(name) for name in ("edge_id", "owner_file_id", "bstart", "bend")
)


class _Edge(Struct, frozen=True):
    """An edge, by the names of its columns."""

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


FIELDS = ", ".join(f"e.{name}" for name in _Edge.__struct_fields__)


def explain(
    reader: Reader, *, edge_id: str | None = None, start: Symbol | None = None, end: Symbol | None = None
) -> Found:
    """What is behind an edge, or behind all edges from one symbol to another."""
    if edge_id is not None:
        edges = _edge(reader, edge_id)
        return held(COLUMNS, _explained(reader, edges))
    if start is None or end is None:
        raise UsageError("nothing to explain", "name an edge, or two symbols")
    edges = _between(reader, start, end)
    if edges:
        return held(COLUMNS, _explained(reader, edges))
    back = len(_between(reader, end, start))
    said = f"no edge leads from {start.symbol} to {end.symbol}"
    return held(COLUMNS, (), (f"{said}; {back:,} lead back" if back else said,))


def _edge(reader: Reader, edge_id: str) -> list[_Edge]:
    query = Query(f"SELECT {FIELDS} FROM e", {"e": Slice("cpg_edges", edge_id=(edge_id,))})
    found = [_Edge(*row) for row in reader.rows(query)]
    if not found:
        raise UsageError(
            f"no edge has the id {edge_id[:100]!r}", "name two symbols, or an id that `explain` has told"
        )
    return found


def _between(reader: Reader, start: Symbol, end: Symbol) -> list[_Edge]:
    """The edges that lead to a symbol from another, or from a place inside of it."""
    arriving = {end.kind, *VARIABLES} if end.kind in VARIABLES else {end.kind, "BINDING"}
    kinds = [name for name, kind in EDGE_KINDS.items() if any(arriving & set(ends.dst) for ends in kind.ends)]
    query = Query(
        f"SELECT DISTINCT {FIELDS} FROM e LEFT JOIN ({spans()}) AS i ON i.file_id = e.owner_file_id"
        " AND i.begins <= e.bstart AND i.ends >= e.bend"
        " LEFT JOIN s ON s.node_id = e.src_node_id WHERE i.node_id IS NOT NULL OR s.node_id IS NOT NULL",
        {
            "e": Slice("cpg_edges", edge_kind=kinds, dst_node_id=end.ids),
            "d": nodes(AROUND, start.repo_id, node_id=start.ids),
            "s": nodes((start.kind, "BINDING"), start.repo_id, node_id=start.ids),
        },
        order=("path", "bstart", "edge_kind", "edge_id"),
    )
    return [_Edge(*row) for row in reader.rows(query)]


def _explained(reader: Reader, edges: Sequence[_Edge]) -> list[dict[str, Any]]:
    names = _names(reader, edges)
    evidence = _evidence(reader, edges)
    groups = _groups(reader, edges)
    around = _around(reader, edges)
    return [
        {
            "relation": edge.edge_kind,
            "symbol": names[edge.src_node_id][0] or around.get(edge.edge_id),
            "kind": names[edge.src_node_id][1],
            "target": names[edge.dst_node_id][0],
            "path": edge.path,
            "line": edge.line,
            "inside": around.get(edge.edge_id),
            "confidence": edge.confidence,
            "method": edge.resolution_method,
            "origin": edge.origin,
            "rule": edge.rule_name,
            "role": edge.role,
            "evidence": evidence.get(
                (edge.edge_kind, edge.src_node_id, edge.dst_node_id, edge.bstart, edge.bend), WITHOUT
            ),
            "group_id": edge.ambiguity_group_id,
            "amount": groups.get((edge.ambiguity_group_id, edge.src_node_id)),
            "detail": in_words(edge.edge_kind, edge.resolution_method),
            "repo_id": edge.repo_id,
            "edge_id": edge.edge_id,
        }
        for edge in edges
    ]


def in_words(kind: str, method: str | None) -> str:
    """What an edge of a kind says, and how its target was found.

    >>> in_words("OVERRIDES", "mro")
    'A method and the one of a base that it replaces, by MRO. Target: found by the order of the base classes.'
    """
    doc = EDGE_KINDS[kind].doc
    return f"{doc} Target: {METHODS.get(method, method)}." if method else doc


def _names(reader: Reader, edges: Sequence[_Edge]) -> dict[str, tuple[str | None, str]]:
    """Of the ends of edges the name, if they have one, and the kind."""
    ids = sorted({node for edge in edges for node in (edge.src_node_id, edge.dst_node_id)})
    # By the prefix of its id, so that syntax nodes are only looked through for syntax nodes.
    prefixes = {node.partition(":")[0] for node in ids}
    kinds = [name for name, kind in NODE_KINDS.items() if kind.prefix in prefixes]
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name) AS name, n.node_kind FROM n",
        {"n": nodes(kinds, node_id=ids)},
    )
    return {node: (name, kind) for node, name, kind in reader.rows(query)}


def _evidence(reader: Reader, edges: Sequence[_Edge]) -> dict[tuple[Any, ...], str]:
    """What witnesses say, by the kind, ends and span of a relation."""
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
        # Of several relations of one kind between the same ends, the last one by its id speaks.
        order=("relation_id",),
        columns=("relation_kind", "src_id", "dst_id", "bstart", "bend", "evidence"),
    )
    return {tuple(key): _said(witnesses or ()) for *key, witnesses in reader.rows(query)}


def _said(witnesses: Sequence[Any]) -> str:
    """What witnesses say, in words; a witness of several rows is named once."""
    said = (f"{each['witness']} {'disagrees' if each['agrees'] is False else 'agrees'}" for each in witnesses)
    return ", ".join(dict.fromkeys(said)) or "no witness is recorded"


def _groups(reader: Reader, edges: Sequence[_Edge]) -> dict[tuple[str | None, str], int]:
    """How many alternatives an ambiguous place has: by group and node, for arguments share their call's."""
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


def _around(reader: Reader, edges: Sequence[_Edge]) -> dict[str, str]:
    """The name of the innermost definition around the source of each edge."""
    placed = [edge for edge in edges if edge.owner_file_id is not None]
    query = Query(
        f"SELECT u.edge_id, d.qualname FROM ({innermost('h', 'edge_id')}) AS u"
        " JOIN d ON d.node_id = u.inner_id",
        {
            "h": Held(PLACE, [tuple(getattr(edge, column.name) for column in PLACE) for edge in placed]),
            "d": nodes(AROUND, file_id=sorted({edge.owner_file_id or "" for edge in placed})),
        },
    )
    return dict(reader.rows(query))
