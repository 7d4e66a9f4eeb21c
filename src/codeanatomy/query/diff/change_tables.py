"""Create the tables of differences between two runs in DuckDB, for `run_diff`.

    create_change_tables(connection, RunPair(before, after, repo_id=None, kinds=()))
    connection.sql("SELECT change, kind, symbol, path, line, was_line, nodes, edges FROM changes")
    # changed  FUNCTION  shop.cart.sell  shop/cart.py  29  27  2  1

Rows are compared by all columns but positions. `nodes` and `edges` are the numbers of elements inside of a
changed definition. An element belongs to the definition whose key its id has, an edge to that of its source;
definitions are inside of others by their spans.

A run pins a version of every table; data files that both versions share are not read, and of those whose
deletion vectors differ, only the rows that one of the two removes.

Tests: `tests/unit/query/test_run_diff.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import duckdb
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.delta.log.deletion_vectors import encode_bits, read_vector
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.read.duck import ROW_NUMBER, rows_at, select_rows, sql_literal
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import KEY_CHARS, PREFIXES
from codeanatomy.query.engines.derived_columns import parse_edge_id, with_derived
from codeanatomy.query.walks.enclosing import ENCLOSING_KINDS, MAX_BYTE

if TYPE_CHECKING:
    from pyroaring import BitMap64

Element = Literal["node", "edge"]


class GraphTable(Struct, frozen=True):
    """A table of the graph that is compared."""

    element: Element
    table: str
    id: str
    kind: str
    kinds: tuple[str, ...]
    # Further columns of a difference, as a SQL select list.
    columns: str


class RunPair(Struct, frozen=True):
    """The two snapshots that are compared, and the selection of rows."""

    before: Snapshot
    after: Snapshot
    repo_id: str | None
    # Empty for all kinds.
    kinds: tuple[str, ...]

    @property
    def has_definitions(self) -> bool:
        """Whether definitions are selected: these depend on elements of all kinds."""
        return not self.kinds or not set(self.kinds).isdisjoint(ENCLOSING_KINDS)


NODES = GraphTable(
    "node",
    "cpg_nodes",
    "node_id",
    "node_kind",
    tuple(NODE_KINDS),
    "coalesce(qualname, name) AS symbol, NULL AS src, NULL AS dst",
)
EDGES = GraphTable(
    "edge",
    "cpg_edges",
    "edge_id",
    "edge_kind",
    tuple(EDGE_KINDS),
    "NULL AS symbol, src_node_id AS src, dst_node_id AS dst",
)
GRAPH_TABLES = (NODES, EDGES)
PROPS = "cpg_props"
# Columns that differ when code has moved.
POSITIONS = ("bstart", "bend", "line")


def create_change_tables(connection: duckdb.DuckDBPyConnection, pair: RunPair) -> None:
    """Create the tables `props` (differing properties) and `changes`, and the views they need."""
    connection.execute(f"CREATE TEMP TABLE props AS {_unequal_sql(pair, PROPS, {})}")
    for table in GRAPH_TABLES:
        _create_sides(connection, pair, table)
    elements = " UNION ALL ".join(map(_elements_sql, GRAPH_TABLES))
    connection.execute(f"CREATE TEMP TABLE elements AS {elements}")
    _create_definitions(connection, pair)
    wanted = _condition({"kind": pair.kinds} if pair.kinds else {})
    connection.execute(f"CREATE TEMP TABLE changes AS SELECT * FROM ({CHANGES}) WHERE {wanted}")


def _create_sides(connection: duckdb.DuckDBPyConnection, pair: RunPair, table: GraphTable) -> None:
    """Create the views of the rows before (`_was`) and after (`_now`) that differ.

    They include rows that differ in their properties alone.
    """
    element = table.element
    is_wanted = pair.kinds and not pair.has_definitions
    kinds = {table.kind: [name for name in table.kinds if name in pair.kinds]} if is_wanted else {}
    unequal = with_derived(table.table, _unequal_sql(pair, table.table, kinds))
    connection.execute(f"CREATE TEMP TABLE {element}_unequal AS {unequal}")
    ids = connection.execute(
        f"SELECT DISTINCT entity_id FROM props WHERE entity_kind = '{element}'"
        f" AND entity_id NOT IN (SELECT {table.id} FROM {element}_unequal)"
    ).fetchall()
    same = _wanted_ids(table, [row[0] for row in ids])
    for side, lake, sign in (("now", pair.after, ">"), ("was", pair.before, "<")):
        files = _prune_files(lake.files(table.table) if ids else (), {**kinds, **same})
        rows = with_derived(table.table, select_rows(lake.root, table.table, files))
        names = f"SELECT * EXCLUDE ({', '.join(POSITIONS)}), line"
        condition = _condition({**kinds, table.id: [row[0] for row in ids]})
        connection.execute(
            f"CREATE TEMP TABLE {element}_{side} AS {names} FROM ({rows}) WHERE {condition} UNION ALL BY NAME"
            f" SELECT * EXCLUDE more FROM {element}_unequal WHERE more {sign} 0"
        )


def _wanted_ids(table: GraphTable, ids: Sequence[str]) -> dict[str, Collection[str]]:
    """Return the values of stored columns that elements with these ids have, for pruning files."""
    if table is NODES:
        return {table.id: ids}
    keys = [key for key in map(parse_edge_id, ids) if key is not None]
    return {name: {getattr(key, name) for key in keys} for name in ("edge_kind", "src_node_id")}


def _create_definitions(connection: duckdb.DuckDBPyConnection, pair: RunPair) -> None:
    """Create the tables of definitions before and after, of the files whose rows were written again.

    All rows of a file are written together: where an element differs, its definition is among them.
    """
    wanted = {"node_kind": (*ENCLOSING_KINDS, *PLACING_KINDS) if pair.has_definitions else ()}
    for side, rows in zip(("was", "now"), _sides_sql(pair, NODES.table, wanted), strict=True):
        connection.execute(f"CREATE TEMP TABLE definitions_{side} AS {DEFINITIONS.format(rows=rows)}")
    connection.execute(f"CREATE TEMP TABLE inside AS {INSIDE}")


def _unequal_sql(pair: RunPair, name: str, wanted: Mapping[str, Collection[str]]) -> str:
    """Return SQL for the rows of a table that differ, apart from positions, and have the wanted values.

    The result column `more` is 1 for rows that only the run after has, and -1 for those of the run before.
    """
    was, now = _sides_sql(pair, name, wanted)
    both = f"SELECT *, -1 AS side FROM ({was}) UNION ALL SELECT *, 1 AS side FROM ({now})"
    names = catalog.table(name).column_names
    compared = ", ".join(f'"{each}"' for each in names if each not in POSITIONS)
    line = ", any_value(line) AS line" if "line" in names else ""
    more = "sum(side)::BIGINT"
    return f"SELECT {compared}{line}, {more} AS more FROM ({both}) GROUP BY {compared} HAVING {more} <> 0"


def _sides_sql(pair: RunPair, name: str, wanted: Mapping[str, Collection[str]]) -> tuple[str, str]:
    """Return SQL for the rows with the wanted values that the runs may not share, before and after."""
    if pair.repo_id is not None:
        wanted = {**wanted, "repo_id": [pair.repo_id]}
    before, after = ({file.path: file for file in lake.files(name)} for lake in (pair.before, pair.after))
    return (
        _side_sql(pair.before, name, before, after, wanted),
        _side_sql(pair.after, name, after, before, wanted),
    )


def _side_sql(
    lake: Snapshot,
    name: str,
    files: Mapping[str, LoggedFile],
    other_files: Mapping[str, LoggedFile],
    wanted: Mapping[str, Collection[str]],
) -> str:
    """Return SQL for the rows of a version that may be missing in the other version.

    These are the rows of data files that only this version has, and the rows that the other version removes
    from a shared data file by its deletion vector.
    """
    root = lake.root
    parts = [
        select_rows(
            root,
            name,
            _prune_files([file for path, file in files.items() if path not in other_files], wanted),
        )
    ]
    shared = [file for path, file in files.items() if other_files.get(path, file) != file]
    for file in _prune_files(shared, wanted):
        removed, removed_in_other = (
            read_vector(location(root, name), each.vector) for each in (file, other_files[file.path])
        )
        if removed_in_other - removed:
            parts.append(_rows_at_sql(root, name, file, removed_in_other - removed))
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) WHERE {_condition(wanted)}"


def _rows_at_sql(root: str, name: str, file: LoggedFile, positions: BitMap64) -> str:
    """Return SQL for the rows of a data file at given positions, in the catalogue's columns."""
    path = folder_of(location(root, name)).local_path(file.path)
    rows = rows_at([path], encode_bits(positions))
    constants = "".join(f", {sql_literal(value)} AS {key}" for key, value in file.partition.items())
    stored = f"COLUMNS(lambda c: c NOT IN ({', '.join(map(sql_literal, (ROW_NUMBER, *file.partition)))}))"
    names = ", ".join(f'"{each}"' for each in catalog.table(name).column_names)
    # The empty relation adds columns that the file lacks, as typed nulls.
    empty = select_rows(root, name, ())
    return f"SELECT {names} FROM ({empty} UNION ALL BY NAME SELECT {stored}{constants} FROM {rows})"


def _prune_files(files: Iterable[LoggedFile], wanted: Mapping[str, Collection[str]]) -> list[LoggedFile]:
    """Keep the files that may hold rows with the wanted values."""
    ordered = {column: sorted(values) for column, values in wanted.items()}
    return [file for file in files if all(file.may_hold(*each) for each in ordered.items())]


def _condition(wanted: Mapping[str, Collection[str]]) -> str:
    listed = {column: ", ".join(map(sql_literal, values)) or "NULL" for column, values in wanted.items()}
    return " AND ".join(f"{column} IN ({values})" for column, values in listed.items()) or "TRUE"


def _elements_sql(table: GraphTable) -> str:
    """Return SQL for the differing rows of a table; the location of a removed element is that before."""
    return (
        f"SELECT '{table.element}' AS element, change, {table.kind} AS kind, repo_id, {table.id} AS id, path,"
        f" line, was_line, {table.columns} FROM ("
        f" SELECT n.*, IF(w.{table.id} IS NULL, 'added', 'changed') AS change, w.line AS was_line"
        f" FROM {table.element}_now n LEFT JOIN {table.element}_was w USING (repo_id, {table.id})"
        f" UNION ALL BY NAME SELECT *, 'removed' AS change FROM {table.element}_was w"
        f" ANTI JOIN {table.element}_now n USING (repo_id, {table.id}))"
    )


# The definition key in an id (`node_ids.key_of`).
KEY = f"substr({{0}}, instr({{0}}, ':') + 1, {KEY_CHARS})"
# Other nodes that have a definition's key and show its extent; comprehensions have only a scope.
PLACING_KINDS = ("SCOPE", "DECORATOR")
# A module encloses its whole file. `node_id` is null for a definition that is none of the kinds of nodes.
DEFINITIONS = f"""
SELECT repo_id, path, {KEY.format("node_id")} AS key,
  max(node_id) FILTER (node_kind IN {ENCLOSING_KINDS}) AS node_id,
  max(node_kind) FILTER (node_kind IN {ENCLOSING_KINDS}) AS kind,
  max(coalesce(qualname, name)) FILTER (node_kind IN {ENCLOSING_KINDS}) AS symbol,
  max(line) FILTER (node_kind IN {ENCLOSING_KINDS}) AS line,
  IF(bool_or(node_kind = 'MODULE'), 0, min(bstart)) AS begins,
  IF(bool_or(node_kind = 'MODULE'), {MAX_BYTE}, max(bend)) AS ends
FROM ({{rows}}) GROUP BY repo_id, path, key
"""
# Elements that differ by definition. A file has the key of its module and is not inside of it.
INSIDE = f"""
WITH counts AS (
  SELECT repo_id, element, change = 'removed' AS is_removed, {KEY.format("coalesce(src, id)")} AS key,
    element = 'node' AND kind IN {ENCLOSING_KINDS} AS is_definition, count(*) AS number
  FROM elements WHERE NOT starts_with(coalesce(src, id), '{PREFIXES["FILE"]}:') GROUP BY ALL
), definitions AS (
  SELECT *, FALSE AS is_removed FROM definitions_now UNION ALL SELECT *, TRUE FROM definitions_was
)
SELECT d.repo_id, d.node_id AS id, coalesce(sum(number) FILTER (element = 'node'), 0)::BIGINT AS nodes,
  coalesce(sum(number) FILTER (element = 'edge'), 0)::BIGINT AS edges
FROM counts c JOIN definitions s USING (repo_id, key, is_removed)
JOIN definitions d ON d.repo_id = s.repo_id AND d.path = s.path AND d.is_removed = s.is_removed AND (
  d.key = s.key
  OR (d.begins <= coalesce(s.begins, 0) AND d.ends >= coalesce(s.ends, {MAX_BYTE}))
)
WHERE d.node_id IS NOT NULL AND NOT (c.is_definition AND d.key = s.key) GROUP BY d.repo_id, d.node_id
"""
CHANGES = """
SELECT e.*, coalesce(i.nodes, 0) AS nodes, coalesce(i.edges, 0) AS edges
FROM elements e LEFT JOIN inside i ON e.change = 'changed' AND i.repo_id = e.repo_id AND i.id = e.id
UNION ALL BY NAME
SELECT 'node' AS element, 'changed' AS change, n.kind, i.repo_id, i.id, n.path, n.line, w.line AS was_line,
  n.symbol, NULL AS src, NULL AS dst, i.nodes, i.edges
FROM inside i
JOIN definitions_now n ON n.repo_id = i.repo_id AND n.node_id = i.id
JOIN definitions_was w ON w.repo_id = i.repo_id AND w.node_id = i.id
ANTI JOIN elements e ON e.repo_id = i.repo_id AND e.id = i.id
"""
