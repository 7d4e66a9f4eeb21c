"""List every reference to a symbol, in file order (`refs SYMBOL`).

    refs(reader, resolve(reader, "requests.Session"))

A reference is a name, an attribute, an import or a keyword of a call; a name that both refers to a definition
and reads the variable it is bound to is listed once. A call without such a reference inside of it is listed,
too, so that every caller has one: an operator that runs a method, a call through another name, a test that
requests a fixture. Its relation is CALLS or INSTANTIATES, and its role is the way in which the function runs.

Tests: `tests/unit/query/test_verb_refs.py`.
"""

from __future__ import annotations

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes
from codeanatomy.query.overriding_methods import note_overrides
from codeanatomy.query.symbols import KINDS
from codeanatomy.query.unresolved_uses import note_unresolved_uses
from codeanatomy.query.verbs.result import VerbResult, query_result
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, PLACE, defined_sql, equal_sql, innermost_sql
from codeanatomy.query.walks.reachability import CALLS

COLUMNS = (
    "symbol",
    "kind",
    "path",
    "line",
    "source",
    "defined",
    "relation",
    "role",
    "inside",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# Of several relations at one place the first is listed.
RELATIONS = ("REFERS_TO", "IMPORTS_NAME", "IMPORTS_MODULE", "WRITES", "DELETES", "READS", *CALLS)
PLACES = (
    *("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS", "DECORATOR", "TYPE_EXPR"),
    *("ARGUMENT", "CALLSITE", "PARAMETER", "FUNCTION"),
)
RANK = " ".join(f"WHEN '{kind}' THEN {rank}" for rank, kind in enumerate(RELATIONS))
IS_CALL = f"edge_kind IN ({', '.join(repr(kind) for kind in CALLS)})"
# Edges `e` without the calls that have a reference to the same symbol inside.
DISTINCT_SQL = (
    "SELECT c.* FROM e AS c LEFT JOIN (SELECT DISTINCT k.edge_id FROM e AS k JOIN e AS r"
    " ON r.owner_file_id = k.owner_file_id AND r.dst_node_id = k.dst_node_id"
    f" AND r.bstart >= k.bstart AND r.bend <= k.bend AND NOT r.{IS_CALL} WHERE k.{IS_CALL}) AS o"
    " ON o.edge_id = c.edge_id WHERE o.edge_id IS NULL"
)
# Calls in f-strings may have no span: each is a place of its own.
PLACE_SQL = "e.repo_id, e.path, e.bstart, e.bend, CASE WHEN e.bstart IS NULL THEN e.src_node_id END"
# References whose nodes and files are looked up by id.
MAX_LOOKUPS = 2000


def refs(reader: Reader, symbol: Symbol) -> VerbResult:
    """List the references to a symbol."""
    edges = _reference_edges(symbol)
    filters = _id_filters(reader, edges)
    result = query_result(
        COLUMNS,
        f"""
        WITH places AS (
          SELECT e.*, row_number() OVER (
            PARTITION BY {PLACE_SQL}
            ORDER BY CASE e.edge_kind {RANK} END, e.confidence DESC, e.dst_node_id, e.src_node_id, e.repeat
          ) AS place_rank FROM ({DISTINCT_SQL}) AS e
        ), inner_most AS ({innermost_sql("places", *PLACE)})
        SELECT t.qualname AS symbol, coalesce(n.node_kind, 'AST_NODE') AS kind, p.path, p.line, p.bstart,
          p.bend, CAST(NULL AS STRING) AS source, {defined_sql("t", symbol.line)} AS defined,
          p.edge_kind AS relation,
          CASE WHEN p.{IS_CALL} THEN p.role ELSE n.subkind END AS role, d.qualname AS inside, p.confidence,
          p.resolution_method AS method, p.repo_id, p.dst_node_id AS symbol_id, p.src_node_id
        FROM places p
        LEFT JOIN n ON n.node_id = p.src_node_id AND n.path = p.path
        LEFT JOIN t ON t.node_id = p.dst_node_id
        LEFT JOIN inner_most i ON {equal_sql("i", "p", *PLACE)}
        LEFT JOIN d ON d.node_id = i.inner_id
        WHERE p.place_rank = 1
        """,
        {
            "e": edges,
            "n": nodes(PLACES, symbol.repo_id, **filters.get("places", {})),
            "d": nodes(ENCLOSING_KINDS, symbol.repo_id, **filters.get("enclosing", {})),
            "t": nodes(KINDS, symbol.repo_id, node_id=symbol.ids),
        },
        order=("path", "bstart", "relation", "symbol_id", "bend", "src_node_id"),
    )
    return note_unresolved_uses(reader, note_overrides(reader, result, symbol), symbol)


def count_refs(reader: Reader, symbol: Symbol) -> int:
    """Count the references to a symbol."""
    query = Query(
        f"SELECT count(*) FROM (SELECT DISTINCT {PLACE_SQL} FROM ({DISTINCT_SQL}) AS e) AS places",
        {"e": _reference_edges(symbol)},
    )
    ((count,),) = reader.rows(query)
    return int(count)


def _reference_edges(symbol: Symbol) -> Slice:
    return Slice("cpg_edges_by_dst", dst_node_id=symbol.ids, edge_kind=RELATIONS)


def _id_filters(reader: Reader, edges: Slice) -> dict[str, dict[str, list[str]]]:
    """Return the nodes and files of few references: looking them up is faster than joining all."""
    rows = reader.rows(Query("SELECT e.src_node_id, e.owner_file_id FROM e", {"e": edges}), MAX_LOOKUPS + 1)
    if len(rows) > MAX_LOOKUPS:
        return {}
    return {
        "places": {"node_id": sorted({row[0] for row in rows})},
        "enclosing": {"file_id": sorted({row[1] for row in rows})},
    }
