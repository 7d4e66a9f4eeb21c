"""Define the integrity rules of a graph: one SQL query per rule, which selects the rows that break it.

    RULES["id_prefix"]     # SELECT ... FROM nodes n JOIN kinds k ON ... WHERE NOT starts_with(n.node_id, ...

The queries are for DuckDB, over views that `query.checks.verify` creates of the tables of a run, restricted
to its repositories: `nodes`, `edges`, `props`, `props_map`, `by_src`, `by_dst`, `files`, `lines`, `syntax`,
`relations`. `entities` is the union of nodes and edges in their common columns. The declarations of the
catalogue of kinds are small tables (`CATALOGUE`), so that a rule is one query over all kinds. A query returns
the location and a message of each row that breaks its rule (`FINDING_COLUMNS`).

Tests: `tests/unit/query/test_verify.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, PROFILES, EdgeKind
from codeanatomy.catalog.kinds.spec import Count
from codeanatomy.catalog.semantic_types import BY_NAME
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.catalog.tables.graph import CPG_EDGES, CPG_PROPS, EDGE_ID, ENTITY_COLUMNS, VALUE_COLUMNS
from codeanatomy.delta.read.duck import sql_literal
from codeanatomy.query.checks.key_rules import key_rules, key_tables

# Table of the lake behind each view.
VIEWS: Mapping[str, str] = {
    "nodes": "cpg_nodes",
    "edges": "cpg_edges",
    "props": "cpg_props",
    "props_map": "cpg_props_map",
    "by_src": "cpg_edges_by_src",
    "by_dst": "cpg_edges_by_dst",
    "files": "repo_files_v1",
    "lines": "file_line_index_v1",
    "syntax": "ast_files_v1",
    "relations": "relations_v1",
}
# Views checked for constraints; the rules `by_src_equal` and `by_dst_equal` compare the copies with `edges`.
CONSTRAINED = ("nodes", "edges", "props", "props_map")
# Columns of a finding, in this order, and their types; `verify` computes the line from the byte.
FINDING_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("table_name", "repo_id", "kind", "entity_id", "file_id", "path"), "VARCHAR"),
    "bstart": "BIGINT",
    "message": "VARCHAR",
}

Rows = list[dict[str, Any]]
Side = Literal["src", "dst"]


def _node_kinds(kinds: EdgeKind, side: Side) -> Iterable[str]:
    return dict.fromkeys(name for ends in kinds.ends for name in getattr(ends, side))


def _kinds() -> Rows:
    nodes = [
        {
            "entity_kind": "node",
            "kind": kind.name,
            "prefix": kind.prefix,
            "owner": kind.owner,
            "placed": kind.placed,
        }
        for kind in NODE_KINDS.values()
    ]
    edges = [
        {
            "entity_kind": "edge",
            "kind": kind.name,
            "prefix": None,
            "owner": kind.owner,
            "placed": "sometimes",
        }
        for kind in EDGE_KINDS.values()
    ]
    return nodes + edges


def _ends() -> Rows:
    return [
        {"edge_kind": kind.name, "src_kind": src, "dst_kind": dst}
        for kind in EDGE_KINDS.values()
        for ends in kind.ends
        for src, dst in product(ends.src, ends.dst)
    ]


def _needed() -> Rows:
    """Return the edges that each node must have; `always` is false if some profile omits the edge kind."""
    sides: tuple[Side, Side] = ("src", "dst")
    return [
        {
            "edge_kind": kind.name,
            "side": side,
            "node_kind": node,
            "always": len(kind.profiles) == len(PROFILES),
        }
        for kind in EDGE_KINDS.values()
        for side, count in zip(sides, (kind.per_src, kind.per_dst), strict=True)
        if count == "one"
        for node in _node_kinds(kind, side)
    ]


def _declared() -> Rows:
    return [
        {
            "entity_kind": entity,
            "kind": kind.name,
            "prop_key": prop.name,
            "type": prop.type,
            "required": prop.required,
        }
        for entity, kinds in (("node", NODE_KINDS.values()), ("edge", EDGE_KINDS.values()))
        for kind in kinds
        for prop in kind.props
    ]


def _partitions() -> Rows:
    """Return the valid values of the partition columns of the graph's tables."""
    values = {"node_kind": NODE_KINDS, "edge_kind": EDGE_KINDS, "entity_kind": ("node", "edge")}
    return [{"column_name": column, "value": value} for column, known in values.items() for value in known]


# Declarations of the catalogue, as small tables.
CATALOGUE: Mapping[str, Rows] = {
    "kinds": _kinds(),
    "ends": _ends(),
    "needed": _needed(),
    "declared": _declared(),
    "partitions": _partitions(),
}


def _is_edge(entity_id: str) -> str:
    """Return the condition that edge `e` has an id, in which the end nodes are looked up."""
    parts = ("e.edge_kind", "e.src_node_id", "e.dst_node_id")
    equal = (f"{name} = split_part({entity_id}, ';', {at})" for at, name in enumerate(parts, start=1))
    return f"{' AND '.join(equal)} AND e.edge_id = {entity_id}"


# The file of an edge is the file that owns it.
ENTITIES = """
SELECT 'node' AS entity_kind, 'cpg_nodes' AS table_name, repo_id, node_kind AS kind, node_id AS entity_id,
  owner_file_id, file_id, path, bstart, bend
FROM nodes
UNION ALL
SELECT 'edge', 'cpg_edges', repo_id, edge_kind, edge_id,
  owner_file_id, CASE WHEN path IS NOT NULL THEN owner_file_id END, path, bstart, bend
FROM edges
"""

ENTITY_PLACE = """
x.table_name, x.repo_id, x.kind, x.entity_id, coalesce(x.file_id, x.owner_file_id), x.path, x.bstart"""
EDGE_PLACE = "'cpg_edges', e.repo_id, e.edge_kind, e.edge_id, e.owner_file_id, e.path, e.bstart"
NODE_PLACE = """
'cpg_nodes', n.repo_id, n.node_kind, n.node_id, coalesce(n.file_id, n.owner_file_id), n.path, n.bstart"""
# The location of a property is that of its node or edge, if that exists.
PROP_PLACE = """
'cpg_props', p.repo_id, coalesce(p.kind, p.node_kind), p.entity_id,
  coalesce(p.file_id, p.owner_file_id), p.path, p.bstart"""
# Tables that rules read, created once.
PREPARED: Mapping[str, str] = {
    "sizes": """
SELECT file_id, max(line_end_byte) AS size, max(line_no) + 1 AS lines FROM lines GROUP BY file_id""",
    # Outer joins, whose order is kept: of inner ones, DuckDB joins all nodes with all nodes first.
    "wrong_ends": """
SELECT e.*, s.node_kind AS src_kind, d.node_kind AS dst_kind
FROM edges e
LEFT JOIN nodes s ON s.node_id = e.src_node_id AND s.repo_id = e.repo_id
LEFT JOIN nodes d ON d.node_id = e.dst_node_id AND d.repo_id = e.repo_id
LEFT JOIN ends a ON a.edge_kind = e.edge_kind AND a.src_kind = s.node_kind AND a.dst_kind = d.node_kind
WHERE a.edge_kind IS NULL""",
    # Edges are looked up by their ends, which are in the id: computing the ids of all edges takes longer.
    "placed_props": f"""
SELECT p.*, n.node_id IS NOT NULL AS exists, n.node_kind AS kind, n.file_id, n.path, n.bstart,
  n.owner_file_id AS entity_owner
FROM props p
LEFT JOIN nodes n ON n.node_id = p.entity_id AND n.repo_id = p.repo_id
WHERE p.entity_kind = 'node'
UNION ALL BY NAME
SELECT p.*, e.edge_kind IS NOT NULL AS exists, e.edge_kind AS kind,
  CASE WHEN e.path IS NOT NULL THEN e.owner_file_id END AS file_id, e.path, e.bstart,
  e.owner_file_id AS entity_owner
FROM props p
LEFT JOIN edges e ON {_is_edge("p.entity_id")} AND e.repo_id = p.repo_id
WHERE p.entity_kind IS DISTINCT FROM 'node'""",
}


def _texts(values: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, values))


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(column.name for column in columns)


NODE_UNIQUE = f"""
SELECT {NODE_PLACE}, format('{{}} rows have this id', k.times)
FROM nodes n
JOIN (SELECT node_id, count(*) AS times FROM nodes GROUP BY node_id HAVING count(*) > 1) k
  ON k.node_id = n.node_id"""

# By hash first: the ids of all edges together are the largest part of a graph.
KEY = ", ".join(CPG_EDGES.primary_key)
EDGE_UNIQUE = f"""
SELECT {EDGE_PLACE}, format('{{}} rows have this id', k.times)
FROM edges e
JOIN (
  SELECT {KEY}, count(*) AS times FROM edges
  WHERE hash({KEY}) IN (SELECT hash({KEY}) FROM edges GROUP BY ALL HAVING count(*) > 1)
  GROUP BY ALL HAVING count(*) > 1
) k USING ({KEY})"""

# Edges of the same kind and ends are numbered without gaps.
REPEAT_COUNTED = f"""
SELECT {EDGE_PLACE}, format('has the number {{}}, but no edge has the number {{}}', e.repeat, e.repeat - 1)
FROM edges e
ANTI JOIN edges b ON b.edge_kind = e.edge_kind AND b.src_node_id = e.src_node_id
  AND b.dst_node_id = e.dst_node_id AND b.repeat = e.repeat - 1
WHERE e.repeat <> 0"""


PROP_UNIQUE = f"""
SELECT {PROP_PLACE}, format('{{}} rows have the property {{}}', k.times, k.prop_key)
FROM placed_props p
JOIN (
  SELECT entity_kind, entity_id, prop_key, count(*) AS times FROM props
  GROUP BY entity_kind, entity_id, prop_key HAVING count(*) > 1
) k ON k.entity_kind = p.entity_kind AND k.entity_id = p.entity_id AND k.prop_key = p.prop_key"""


ENDS_ALLOWED = f"""
SELECT {EDGE_PLACE}, format('leads from {{}} to {{}}', e.src_kind, e.dst_kind)
FROM wrong_ends e WHERE e.src_kind IS NOT NULL AND e.dst_kind IS NOT NULL"""

KIND_KNOWN = f"""
SELECT {ENTITY_PLACE}, format('{{}} is not a kind of {{}}', x.kind, x.entity_kind)
FROM entities x
ANTI JOIN kinds k ON k.entity_kind = x.entity_kind AND k.kind = x.kind"""

ID_PREFIX = f"""
SELECT {NODE_PLACE}, format('the id of a {{}} must begin with {{}}:', n.node_kind, k.prefix)
FROM nodes n
JOIN kinds k ON k.entity_kind = 'node' AND k.kind = n.node_kind
WHERE NOT starts_with(n.node_id, k.prefix || ':')"""


def _counted_kinds(side: Side, *counts: Count) -> str:
    """Return the kinds of edges whose cardinality at a side is one of `counts`, as a SQL list."""
    kinds = [kind.name for kind in EDGE_KINDS.values() if getattr(kind, f"per_{side}") in counts]
    return _texts(kinds)


def _too_many(side: Side) -> str:
    return f"""
SELECT {EDGE_PLACE}, format('is one of {{}} edges of {side} {{}}, which may have one', k.times,
e.{side}_node_id) FROM edges e JOIN (
  SELECT edge_kind, {side}_node_id, count(*) AS times FROM edges
  WHERE edge_kind IN ({_counted_kinds(side, "one", "at most one")})
  GROUP BY ALL HAVING count(*) > 1
) k ON k.edge_kind = e.edge_kind AND k.{side}_node_id = e.{side}_node_id"""


def _too_few(side: Side) -> str:
    return f"""
SELECT {NODE_PLACE}, format('is not the {side} of any {{}} edge', q.edge_kind)
FROM nodes n
JOIN needed q ON q.node_kind = n.node_kind AND q.side = '{side}'
ANTI JOIN (
  SELECT edge_kind, {side}_node_id FROM edges WHERE edge_kind IN ({_counted_kinds(side, "one")})
) e ON e.edge_kind = q.edge_kind AND e.{side}_node_id = n.node_id
WHERE q.always OR q.edge_kind IN (SELECT DISTINCT edge_kind FROM edges)"""


CARDINALITY = f"""{_too_many("src")}
UNION ALL {_too_many("dst")}
UNION ALL {_too_few("src")}
UNION ALL {_too_few("dst")}"""

PROP_REQUIRED = f"""
SELECT {ENTITY_PLACE}, format('the property {{}} is missing', d.prop_key)
FROM entities x
JOIN declared d ON d.entity_kind = x.entity_kind AND d.kind = x.kind AND d.required
ANTI JOIN props p
  ON p.entity_kind = x.entity_kind AND p.entity_id = x.entity_id AND p.prop_key = d.prop_key"""

VALUE_TYPES = tuple(column.name.removeprefix("value_") for column in VALUE_COLUMNS[1:])
FILLED_RIGHT = " AND ".join(f"(p.value_{name} IS NOT NULL) = (d.type = '{name}')" for name in VALUE_TYPES)
PROP_TYPED = f"""
SELECT {PROP_PLACE}, format('the property {{}} must have exactly one value, of type {{}}', p.prop_key, d.type)
FROM placed_props p
JOIN declared d ON d.entity_kind = p.entity_kind AND d.kind = p.kind AND d.prop_key = p.prop_key
WHERE (p.value_type = d.type AND {FILLED_RIGHT}) IS NOT TRUE"""

PROP_DECLARED = f"""
SELECT {PROP_PLACE}, format('a {{}} does not have the property {{}}', p.kind, p.prop_key)
FROM placed_props p
ANTI JOIN declared d ON d.entity_kind = p.entity_kind AND d.kind = p.kind AND d.prop_key = p.prop_key
WHERE p.exists"""

PROP_ENTITY_EXISTS = f"""
SELECT {PROP_PLACE}, CASE WHEN p.exists
  THEN format('the property {{}} has the wrong node_kind {{}}', p.prop_key, coalesce(p.node_kind, 'null'))
  ELSE format('the {{}} of the property {{}} does not exist', p.entity_kind, p.prop_key) END
FROM placed_props p
WHERE NOT p.exists OR (p.entity_kind = 'node' AND p.node_kind IS DISTINCT FROM p.kind)"""

SPAN_IN_FILE = f"""
SELECT {ENTITY_PLACE}, CASE
  WHEN x.bstart IS NULL THEN 'has no span'
  WHEN k.placed = 'never' THEN 'must not have a span'
  ELSE format('span {{}}-{{}} does not fit a file of {{}} bytes', x.bstart, x.bend, coalesce(z.size, 0)) END
FROM entities x
LEFT JOIN kinds k ON k.entity_kind = x.entity_kind AND k.kind = x.kind
LEFT JOIN sizes z ON z.file_id = x.file_id
WHERE (k.placed = 'always' AND x.bstart IS NULL) OR (k.placed = 'never' AND x.bstart IS NOT NULL)
  OR (x.bstart IS NOT NULL
    AND (x.bstart >= 0 AND x.bstart <= x.bend AND x.bend <= coalesce(z.size, 0)) IS NOT TRUE)"""

# A position at the end of the text is on the last line; an empty file has one line.
LINE_RIGHT = f"""
SELECT {NODE_PLACE}, format('line {{}} is wrong for byte {{}}', coalesce(n.line::VARCHAR, 'null'), n.bstart)
FROM nodes n
LEFT JOIN lines l ON l.file_id = n.file_id AND l.line_no = n.line - 1
LEFT JOIN sizes z ON z.file_id = n.file_id
WHERE n.bstart IS NOT NULL AND CASE
  WHEN n.bstart < coalesce(z.size, 0) THEN n.bstart >= l.line_start_byte AND n.bstart < l.line_end_byte
  -- A diagnostic about the end of the text may be on the line that starts after the last newline.
  ELSE n.line - coalesce(z.lines, 1) IN (0, CASE n.node_kind WHEN 'DIAGNOSTIC' THEN 1 ELSE 0 END)
  END IS NOT TRUE"""

PATH_RIGHT = f"""
SELECT {ENTITY_PLACE},
  format('its path is {{}}, that of its file {{}}', coalesce(x.path, 'null'), coalesce(f.path, 'unknown'))
FROM entities x
LEFT JOIN files f ON f.file_id = x.file_id AND f.repo_id = x.repo_id
WHERE x.file_id IS NOT NULL AND x.path IS DISTINCT FROM f.path"""

OWNER = f"""
SELECT {ENTITY_PLACE}, CASE
  WHEN x.owner_file_id IS NULL THEN 'has no owner'
  WHEN k.owner = 'repository' THEN 'belongs to the repository and must not have an owner'
  ELSE format('is in file {{}} but owned by {{}}', x.file_id, x.owner_file_id) END
FROM entities x
LEFT JOIN kinds k ON k.entity_kind = x.entity_kind AND k.kind = x.kind
WHERE (k.owner = 'file' AND x.owner_file_id IS NULL)
  OR (k.owner = 'repository' AND x.owner_file_id IS NOT NULL) OR x.file_id <> x.owner_file_id
UNION ALL
SELECT {PROP_PLACE}, format('the property {{}} has another owner than its node or edge', p.prop_key)
FROM placed_props p
WHERE p.exists AND p.owner_file_id IS DISTINCT FROM p.entity_owner"""

# The location of a finding is the data file.
PARTITION = """
SELECT f.table_name, NULL, f.value, f.file, NULL, f.file, NULL, CASE
  WHEN f.folder IS DISTINCT FROM f.column_name || '=' || f.value
  THEN format('the log has it under {}={}', f.column_name, coalesce(f.value, 'null'))
  ELSE format('{} is not a valid {}', f.value, f.column_name) END
FROM data_files f
WHERE f.column_name IS NOT NULL AND (
  f.folder IS DISTINCT FROM f.column_name || '=' || f.value
  OR (f.column_name, f.value) NOT IN (SELECT (column_name, value) FROM partitions)
)"""


def _difference(names: str, rows: str, copies: str, groups: str) -> str:
    """Return a WITH clause for `lost` (rows without a copy) and `extra` (copies without a row).

    Only groups whose row counts or hash sums differ are compared.
    """
    sums = f"SELECT {groups}, count(*) AS times, sum(hash({names})) AS hashes"
    return f"""
WITH row_sums AS MATERIALIZED ({sums} FROM {rows} GROUP BY ALL),
copy_sums AS MATERIALIZED ({sums} FROM {copies} GROUP BY ALL),
differing AS MATERIALIZED (
  SELECT DISTINCT {groups}
  FROM ((FROM row_sums EXCEPT FROM copy_sums) UNION ALL (FROM copy_sums EXCEPT FROM row_sums))
),
differing_rows AS MATERIALIZED (SELECT {names} FROM {rows} SEMI JOIN differing USING ({groups})),
differing_copies AS MATERIALIZED (SELECT {names} FROM {copies} SEMI JOIN differing USING ({groups})),
lost AS (FROM differing_rows EXCEPT ALL FROM differing_copies),
extra AS (FROM differing_copies EXCEPT ALL FROM differing_rows)"""


def _edges_equal(view: str) -> str:
    place = f"'{VIEWS[view]}', repo_id, edge_kind, {EDGE_ID.sql}, owner_file_id, path, bstart"
    return f"""
{_difference(_names(CPG_EDGES.columns), "edges", view, "repo_id, edge_kind")}
SELECT {place}, 'the copy of this edge is missing or different' FROM lost
UNION ALL
SELECT {place}, 'cpg_edges has no such edge' FROM extra"""


FLAT_PROPS = f"(SELECT {_names(ENTITY_COLUMNS)}, unnest(props, recursive := true) FROM props_map)"
MAP_PLACE = "'cpg_props_map', repo_id, node_kind, entity_id, owner_file_id, NULL, NULL"
KEYS = "[p.prop_key FOR p IN props]"
PROPS_MAP_EQUAL = f"""
{_difference(_names(CPG_PROPS.columns), "props", FLAT_PROPS, "repo_id, entity_kind, prop_key")}
SELECT {MAP_PLACE}, format('the property {{}} is missing or different', prop_key) FROM lost
UNION ALL
SELECT {MAP_PLACE}, format('cpg_props has no such property {{}}', prop_key) FROM extra
UNION ALL
SELECT {MAP_PLACE}, 'its properties are not sorted by key' FROM props_map
WHERE (len(props) > 0 AND {KEYS} = list_sort({KEYS})) IS NOT TRUE
UNION ALL
SELECT 'cpg_props_map', any_value(repo_id), any_value(node_kind), entity_id, any_value(owner_file_id), NULL,
  NULL, format('{{}} rows have this id', count(*))
FROM props_map GROUP BY entity_kind, entity_id HAVING count(*) > 1"""

# Row counts of data files against the log, of tables and of repositories against the manifest.
COUNTS = """
SELECT table_name, NULL, NULL, file, NULL, file, NULL,
  format('{} rows, {} in the log', rows, coalesce(logged::VARCHAR, 'unknown'))
FROM data_files WHERE rows IS DISTINCT FROM logged
UNION ALL
SELECT p.table_name, NULL, NULL, NULL, NULL, NULL, NULL,
  format('{} rows, {} in the manifest', coalesce(f.rows, 0), p.rows)
FROM pins p
LEFT JOIN (SELECT table_name, sum(rows - removed)::BIGINT AS rows FROM data_files GROUP BY table_name) f
  ON f.table_name = p.table_name
WHERE p.rows <> coalesce(f.rows, 0)
UNION ALL
SELECT r.table_name, r.repo_id, NULL, NULL, NULL, NULL, NULL,
  format('{} rows, {} in the manifest', coalesce(c.rows, 0), r.rows)
FROM recorded r
LEFT JOIN counted c ON c.table_name = r.table_name AND c.repo_id = r.repo_id
WHERE r.rows <> coalesce(c.rows, 0)"""


def _conditions(table: Table) -> dict[str, str]:
    """Return the conditions that are checked when rows are committed, by name."""
    conditions = {
        f"{each.name} is not null": f"{each.name} IS NOT NULL" for each in table.columns if not each.nullable
    }
    for column in table.columns:
        semantic = BY_NAME.get(column.semantic_type or "")
        if semantic is not None and semantic.check is not None:
            check = semantic.check.format(c=column.name)
            conditions[f"{column.name} is a {semantic.name}"] = f"{column.name} IS NULL OR ({check})"
    return conditions | {rule.name: rule.expression for rule in table.constraints}


def _broken(view: str) -> str:
    table = catalog.table(VIEWS[view])
    conditions = _conditions(table)
    broken = ", ".join(
        f"CASE WHEN ({condition}) IS NOT TRUE THEN {sql_literal(name)} END"
        for name, condition in conditions.items()
    )
    names = {column.name for column in table.readable_columns}
    place = [
        "repo_id",
        next(name for name in ("edge_kind", "node_kind") if name in names),
        next(name for name in ("edge_id", "node_id", "entity_id") if name in names),
        "owner_file_id",
        *(name if name in names else "NULL" for name in ("path", "bstart")),
    ]
    return f"""
SELECT '{table.name}', {", ".join(place)}, 'breaks: ' || broken
FROM (SELECT *, concat_ws(', ', {broken}) AS broken FROM {view}) WHERE broken <> ''"""


SHARED = "role, ordinal, owner_file_id, path, bstart, bend"
RELATED = f"""(
  SELECT DISTINCT repo_id, relation_kind AS edge_kind, src_id AS src, dst_id AS dst, {SHARED} FROM relations
  WHERE dst_id IS NOT NULL AND relation_kind IN ({_texts(EDGE_KINDS)})
)"""
EMITTED = f"""(
  SELECT repo_id, edge_kind, src_node_id AS src, dst_node_id AS dst, {SHARED} FROM edges
  WHERE edge_kind IN ({_texts(kind.name for kind in EDGE_KINDS.values() if "relations_v1" in kind.sources)})
)"""
# Kinds of which every edge comes from a relation; of other kinds only some do.
ALL_RELATED = _texts(kind.name for kind in EDGE_KINDS.values() if kind.sources == ("relations_v1",))
RELATIONS_KEPT = f"""
{_difference(f"repo_id, edge_kind, src, dst, {SHARED}", RELATED, EMITTED, "repo_id, edge_kind")}
SELECT 'relations_v1', repo_id, edge_kind, src, owner_file_id, path, bstart,
  format('the relation to {{}} has no edge', dst)
FROM lost
UNION ALL
SELECT 'cpg_edges', repo_id, edge_kind, src, owner_file_id, path, bstart,
  format('the edge to {{}} has no relation', dst)
FROM extra WHERE edge_kind IN ({ALL_RELATED})"""

SYNTAX_COMPLETE = """
SELECT 'cpg_nodes', repo_id, 'AST_NODE', file_id, file_id, NULL, NULL,
  format('{} nodes in the graph, {} in the syntax tree', coalesce(n.times, 0), coalesce(a.times, 0))
FROM (SELECT repo_id, file_id, count(*) AS times FROM nodes WHERE node_kind = 'AST_NODE' GROUP BY ALL) n
FULL JOIN (SELECT repo_id, file_id, len(nodes) AS times FROM syntax) a USING (repo_id, file_id)
WHERE coalesce(n.times, 0) <> coalesce(a.times, 0)"""

RULES: Mapping[str, str] = {
    "node_id_unique": NODE_UNIQUE,
    "edge_id_unique": EDGE_UNIQUE,
    "repeat_counted": REPEAT_COUNTED,
    "prop_unique": PROP_UNIQUE,
    "ends_allowed": ENDS_ALLOWED,
    "kind_known": KIND_KNOWN,
    "id_prefix": ID_PREFIX,
    "cardinality": CARDINALITY,
    "prop_required": PROP_REQUIRED,
    "prop_typed": PROP_TYPED,
    "prop_declared": PROP_DECLARED,
    "prop_entity_exists": PROP_ENTITY_EXISTS,
    "span_in_file": SPAN_IN_FILE,
    "line_right": LINE_RIGHT,
    "path_right": PATH_RIGHT,
    "owner": OWNER,
    "partition": PARTITION,
    "by_src_equal": _edges_equal("by_src"),
    "by_dst_equal": _edges_equal("by_dst"),
    "props_map_equal": PROPS_MAP_EQUAL,
    "counts": COUNTS,
    "constraints": "\nUNION ALL".join(map(_broken, CONSTRAINED)),
    "relations_kept": RELATIONS_KEPT,
    "syntax_complete": SYNTAX_COMPLETE,
    **key_rules(catalog.TABLES, {table: view for view, table in VIEWS.items()}),
}
# Tables that the rules read; those without a view of another name have one of their own name.
CHECKED = tuple(dict.fromkeys((*VIEWS.values(), *key_tables(catalog.TABLES))))
