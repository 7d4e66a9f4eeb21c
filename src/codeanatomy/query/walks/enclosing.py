"""The definitions around places, and what is inside of definitions.

    users(reader, ids, ("REFERS_TO",), ("CALL_GRAPH",))   # the definitions that name them, or call them
    contents(reader, symbol)                        # of a class its methods and attributes, {id: name}

A decorator belongs to what it decorates here, though it stands before it. Who calls is another question: the
call graph knows functions and modules only, and code in the body of a class is the module's
(`CALLERS`). Tests: `tests/test_verb_impact.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.lanes.reading import Query, Reader, Slice
from codeanatomy.query.symbols import nodes

AROUND = ("FUNCTION", "CLASS", "MODULE")
CALLERS = ("FUNCTION", "MODULE")
# The definitions with their decorators, as a relation; a module is the whole file.
SPANS = (
    "(SELECT d.node_id, d.file_id, CASE d.node_kind WHEN 'MODULE' THEN 0"
    " ELSE coalesce(least(d.bstart, min(x.bstart)), d.bstart) END AS begins,"
    " CASE d.node_kind WHEN 'MODULE' THEN 9223372036854775807 ELSE d.bend END AS ends"
    " FROM d LEFT JOIN x ON x.dst_node_id = d.node_id"
    " GROUP BY d.node_id, d.node_kind, d.file_id, d.bstart, d.bend)"
)


class Use(Struct, frozen=True):
    """An edge that leads to a node from somewhere inside a definition, or from the definition itself."""

    # The definition.
    node_id: str
    kind: str
    subkind: str | None
    name: str
    repo_id: str
    # What is used.
    via: str
    edge_kind: str
    path: str | None
    line: int | None
    confidence: float
    method: str | None


def users(
    reader: Reader,
    ids: Collection[str],
    from_places: Collection[str],
    from_definitions: Collection[str],
    around: Collection[str] = AROUND,
) -> list[Use]:
    """The edges of some kinds that arrive at some nodes, each with the innermost definition it starts in."""
    if not ids:
        return []
    wanted = tuple(sorted(ids))
    decorators = ("DECORATES",) if "CLASS" in around else ()
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, coalesce(n.qualname, n.name) AS symbol, n.repo_id,"
        " u.dst_node_id, u.edge_kind, u.path, u.line, u.confidence, u.resolution_method FROM ("
        " SELECT s.src_node_id AS user_id, s.dst_node_id, s.edge_kind, s.path, s.line, s.confidence,"
        " s.resolution_method FROM s UNION ALL"
        " SELECT min_by(i.node_id, i.ends - i.begins) AS user_id, e.dst_node_id, e.edge_kind, e.path, e.line,"
        f" e.confidence, e.resolution_method FROM e JOIN {SPANS} i ON i.file_id = e.owner_file_id"
        " AND i.begins <= e.bstart AND i.ends >= e.bend GROUP BY e.edge_id, e.dst_node_id, e.edge_kind,"
        " e.path, e.line, e.confidence, e.resolution_method) u JOIN n ON n.node_id = u.user_id",
        {
            # The folders of these kinds, not the copy by `dst_node_id`: of that, a row group of half a
            # million edges would be read in eight columns: six times as long on a lake of django.
            "s": Slice("cpg_edges", edge_kind=tuple(from_definitions), dst_node_id=wanted),
            "e": Slice("cpg_edges", edge_kind=tuple(from_places), dst_node_id=wanted),
            "d": nodes(around),
            "x": Slice("cpg_edges", edge_kind=decorators),
            "n": nodes(AROUND),
        },
        order=("symbol", "node_id", "dst_node_id", "edge_kind", "path", "line"),
    )
    return [Use(*row) for row in reader.rows(query)]


def contents(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """What is inside of a class or module, by id: definitions and their names, and its own variables."""
    query = Query(
        "SELECT m.node_id, m.qualname FROM c JOIN m ON m.file_id = c.file_id"
        " AND m.bstart >= coalesce(c.bstart, 0) AND m.bend <= coalesce(c.bend, 9223372036854775807)"
        " UNION SELECT b.node_id, b.qualname FROM c JOIN b ON b.file_id = c.file_id"
        " AND b.qualname = concat(c.qualname, '.', b.name) WHERE b.subkind <> 'import'",
        {
            "c": nodes(("CLASS", "MODULE"), symbol.repo_id, node_id=symbol.ids),
            "m": nodes(("FUNCTION", "CLASS"), symbol.repo_id),
            "b": nodes(("BINDING",), symbol.repo_id),
        },
    )
    return dict(reader.rows(query))
