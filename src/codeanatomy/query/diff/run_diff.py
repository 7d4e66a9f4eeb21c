"""Compare the graphs of two runs: nodes and edges that were added, removed or changed.

    diff = diff_runs("lake", "20260501T12", kinds=["FUNCTION"])     # from that run to the newest
    diff.counts[0]        # KindCount("node", "FUNCTION", added=2, removed=1, changed=0)
    diff.rows[0].symbol   # "shop.cart.sell"; of an edge "shop.cart.sell -> shop.money.Price"

An element is the same in both runs if its id is, and changed if one of its columns or properties is. The ids
of some kinds include the position, so a moved node of such a kind is removed and added; if a file has one
node of a kind and qualified name before and after, each of the two rows gives the location of the other. A
run pins a version of every table; data files that both versions share are not read, and of those whose
deletion vectors differ, only the rows that one of the two removes.

Tests: `tests/unit/query/test_run_diff.py`, `tests/spark/test_run_diff.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import duckdb
from msgspec import Struct, json

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, kind
from codeanatomy.delta.log.deletion_vectors import encode_bits, read_vector
from codeanatomy.delta.read.duck import (
    ROW_NUMBER,
    local_path,
    lookup_connection,
    rows_at,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import location
from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import LATEST, Snapshot
from codeanatomy.node_ids import PREFIXES
from codeanatomy.query.answers import DEFAULT_LIMIT, check_limit, place
from codeanatomy.query.checks.compare import unequal_rows_sql
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice

if TYPE_CHECKING:
    from pyroaring import BitMap64

# Characters of a value in `detail`.
MAX_VALUE_CHARS = 60

Element = Literal["node", "edge"]
ChangeKind = Literal["added", "removed", "changed"]


class ValueChange(Struct, frozen=True):
    """A column or property before and after."""

    was: Any
    now: Any


class ElementChange(Struct, frozen=True):
    """A node or edge that differs between the runs."""

    change: ChangeKind
    element: Element
    kind: str
    # Qualified name, or the plain name; of an edge those of its two ends.
    symbol: str | None
    # Location after; of a removed element, before.
    path: str | None
    # Counted from 1.
    line: int | None
    # Columns and properties that differ; empty for added and removed elements.
    differs: dict[str, ValueChange]
    # The same as text; of a moved node, the location of its counterpart.
    detail: str | None
    repo_id: str
    id: str


class KindCount(Struct, frozen=True):
    """Number of elements of a kind that differ between the runs."""

    element: Element
    kind: str
    added: int
    removed: int
    changed: int


class RunDiff(Struct, frozen=True):
    """The differences between two runs of a lake."""

    lake: str
    run_a: str
    run_b: str
    # In the catalogue's order of kinds.
    counts: tuple[KindCount, ...]
    # In the same order, then by location.
    rows: tuple[ElementChange, ...]
    total: int
    # Rows left out by the limit.
    cut: int
    # The option that returns all rows.
    more: str | None
    # Limitations of this answer, in English.
    notes: tuple[str, ...]


class _GraphTable(Struct, frozen=True):
    """A table of the graph that is compared."""

    element: Element
    table: str
    id: str
    kind: str
    kinds: tuple[str, ...]
    # Further columns of a difference, as a SQL select list.
    columns: str


class _RunPair(Struct, frozen=True):
    """The two snapshots that are compared, and the selection of rows."""

    before: Snapshot
    after: Snapshot
    repo_id: str | None
    # Empty for all kinds.
    kinds: tuple[str, ...]


NODES = _GraphTable(
    "node",
    "cpg_nodes",
    "node_id",
    "node_kind",
    tuple(NODE_KINDS),
    "coalesce(qualname, name) AS symbol, qualname, NULL AS src, NULL AS dst",
)
EDGES = _GraphTable(
    "edge",
    "cpg_edges",
    "edge_id",
    "edge_kind",
    tuple(EDGE_KINDS),
    "NULL AS symbol, NULL AS qualname, src_node_id AS src, dst_node_id AS dst",
)
GRAPH_TABLES = (NODES, EDGES)
RANKS = f"[{', '.join(sql_literal(name) for table in GRAPH_TABLES for name in table.kinds)}]"
PROPS = "cpg_props"
VALUE_COLUMNS = ("value_string", "value_int", "value_float", "value_bool", "value_json")


def diff_runs(
    root: str,
    run_a: str,
    run_b: str = LATEST,
    *,
    kinds: Collection[str] = (),
    repo_id: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> RunDiff:
    """Compare two published runs, for all kinds and repositories or for some.

    A run is given as `latest`, its id or a prefix of it, or a time.
    """
    check_limit(limit)
    before, after = (Snapshot.open(root, None if run == LATEST else run) for run in (run_a, run_b))
    known = {*before.repositories, *after.repositories}
    if repo_id is not None and repo_id not in known:
        raise UnknownName("repository", repo_id, known)
    pair = _RunPair(before, after, repo_id, tuple(kind(name.upper()).name for name in kinds))
    # Temporary tables belong to the connection.
    with translate_errors(), lookup_connection() as connection:
        _create_tables(connection, pair)
        counts = tuple(KindCount(*row) for row in connection.execute(COUNTS).fetchall())
        rows = _first_changes(connection, pair, limit)
        [moved] = connection.execute("SELECT count(*) FROM moved").fetchone() or (0,)
    total = sum(each.added + each.removed + each.changed for each in counts)
    cut = total - len(rows)
    return RunDiff(
        root,
        before.run_id,
        after.run_id,
        counts,
        tuple(rows),
        total,
        cut,
        f"--limit {total}" if cut else None,
        (f"{moved:,} nodes were moved or edited: they are listed as removed and as added",) if moved else (),
    )


def _create_tables(connection: duckdb.DuckDBPyConnection, pair: _RunPair) -> None:
    """Create the tables `props` (differing properties), `changes` and `moved`, and the views they need."""
    connection.execute(f"CREATE TEMP TABLE props AS {_unequal_sql(pair, PROPS, {})}")
    for table in GRAPH_TABLES:
        _create_sides(connection, pair, table)
    connection.execute(f"CREATE TEMP TABLE changes AS {' UNION ALL '.join(map(_changes_sql, GRAPH_TABLES))}")
    connection.execute(f"CREATE TEMP TABLE moved AS {MOVED}")


def _create_sides(connection: duckdb.DuckDBPyConnection, pair: _RunPair, table: _GraphTable) -> None:
    """Create the views of the rows before (`_was`) and after (`_now`) that differ.

    They include rows that differ in their properties alone.
    """
    element = table.element
    kinds = {table.kind: [name for name in table.kinds if name in pair.kinds]} if pair.kinds else {}
    connection.execute(f"CREATE TEMP TABLE {element}_unequal AS {_unequal_sql(pair, table.table, kinds)}")
    ids = connection.execute(
        f"SELECT DISTINCT entity_id FROM props WHERE entity_kind = '{element}'"
        f" AND entity_id NOT IN (SELECT {table.id} FROM {element}_unequal)"
    ).fetchall()
    same = {**kinds, table.id: [row[0] for row in ids]}
    files = _prune_files(pair.after.files(table.table) if ids else (), same)
    rows = select_rows(local_path(pair.after.root), table.table, files)
    connection.execute(f"CREATE TEMP TABLE {element}_same AS {rows} WHERE {_condition(same)}")
    for side, sign in (("now", ">"), ("was", "<")):
        connection.execute(
            f"CREATE TEMP VIEW {element}_{side} AS FROM {element}_same UNION ALL"
            f" SELECT * EXCLUDE more FROM {element}_unequal WHERE more {sign} 0"
        )


def _unequal_sql(pair: _RunPair, name: str, wanted: Mapping[str, Collection[str]]) -> str:
    """Return SQL for the rows of a table that differ and have the wanted values."""
    if pair.repo_id is not None:
        wanted = {**wanted, "repo_id": [pair.repo_id]}
    before, after = ({file.path: file for file in lake.files(name)} for lake in (pair.before, pair.after))
    sides = {
        -1: _side_sql(pair.before, name, before, after, wanted),
        1: _side_sql(pair.after, name, after, before, wanted),
    }
    both = " UNION ALL ".join(f"SELECT *, {side} AS side FROM ({rows})" for side, rows in sides.items())
    return unequal_rows_sql(catalog.table(name).column_names, f"({both})")


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
    root = local_path(lake.root)
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
    rows = rows_at([f"{location(root, name)}/{file.path}"], encode_bits(positions))
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


def _changes_sql(table: _GraphTable) -> str:
    """Return SQL for the changes of a table; the location of a removed element is that before."""
    return (
        f"SELECT '{table.element}' AS element, change, {table.kind} AS kind, repo_id, {table.id} AS id, path,"
        f" line, {table.columns} FROM ("
        f" SELECT n.*, IF(w.{table.id} IS NULL, 'added', 'changed') AS change FROM {table.element}_now n"
        f" LEFT JOIN {table.element}_was w USING (repo_id, {table.id})"
        f" UNION ALL SELECT *, 'removed' FROM {table.element}_was w"
        f" ANTI JOIN {table.element}_now n USING (repo_id, {table.id}))"
    )


COUNTS = f"""
SELECT element, kind, count(*) FILTER (change = 'added'), count(*) FILTER (change = 'removed'),
  count(*) FILTER (change = 'changed')
FROM changes GROUP BY element, kind ORDER BY element DESC, list_position({RANKS}, kind)
"""
# Nodes of which a file has one before and one after, by kind and qualified name, with different ids.
MOVED = """
SELECT repo_id, kind, qualname, path, min(line) FILTER (change = 'removed') AS was,
  min(line) FILTER (change = 'added') AS now
FROM changes WHERE qualname IS NOT NULL AND change <> 'changed' GROUP BY repo_id, kind, qualname, path
HAVING count(*) FILTER (change = 'removed') = 1 AND count(*) FILTER (change = 'added') = 1
"""
FIRST_CHANGES = f"""
SELECT f.element, f.change, f.kind, f.repo_id, f.id, f.path, f.line, f.symbol, f.src, f.dst,
  m.repo_id IS NOT NULL, IF(f.change = 'added', m.was, m.now)
FROM changes f
LEFT JOIN moved m ON m.repo_id = f.repo_id AND m.kind = f.kind AND m.qualname = f.qualname AND m.path = f.path
  AND f.change <> 'changed'
ORDER BY f.element DESC, list_position({RANKS}, f.kind), f.path, f.line, f.symbol, f.change, f.id LIMIT $limit
"""


def _first_changes(connection: duckdb.DuckDBPyConnection, pair: _RunPair, limit: int) -> list[ElementChange]:
    """Return the first `limit` changes, in order."""
    rows = connection.execute(FIRST_CHANGES, {"limit": limit}).fetchall()
    changed = [row[4] for row in rows if row[1] == "changed"]
    differs = _value_changes(connection, changed)
    ends = {
        is_removed: _node_names(
            lake, [each for row in rows if (row[1] == "removed") == is_removed for each in row[8:10]]
        )
        for lake, is_removed in ((pair.before, True), (pair.after, False))
    }
    changes = []
    for element, change, name, repo_id, entity_id, path, line, node_name, src, dst, is_moved, other in rows:
        names = ends[change == "removed"]
        symbol = f"{names.get(src, src)} -> {names.get(dst, dst)}" if element == "edge" else node_name
        values = differs.get(entity_id, {})
        detail = ", ".join(f"{key}: {_text(each.was)} -> {_text(each.now)}" for key, each in values.items())
        if is_moved:
            detail = f"{'before' if change == 'added' else 'now'}: {place(path, other)}"
        changes.append(
            ElementChange(
                change, element, name, symbol, path, line, values, detail or None, repo_id, entity_id
            )
        )
    return changes


def _value_changes(
    connection: duckdb.DuckDBPyConnection, ids: Sequence[str]
) -> dict[str, dict[str, ValueChange]]:
    """Return the columns and properties that differ, by id of the changed element."""
    differs: dict[str, dict[str, ValueChange]] = {entity_id: {} for entity_id in ids}
    listed = ", ".join(map(sql_literal, ids)) or "NULL"
    for table in GRAPH_TABLES:
        rows = connection.execute(
            f"SELECT w, n FROM {table.element}_now n JOIN {table.element}_was w USING (repo_id, {table.id})"
            f" WHERE {table.id} IN ({listed})"
        )
        for was, now in rows.fetchall():
            differs[now[table.id]] = {
                name: ValueChange(was[name], now[name]) for name in now if was[name] != now[name]
            }
    values: dict[tuple[str, str], dict[bool, Any]] = {}
    rows = connection.execute(
        f"SELECT entity_id, prop_key, more > 0, {', '.join(VALUE_COLUMNS)} FROM props"
        f" WHERE entity_id IN ({listed}) ORDER BY entity_id, prop_key"
    )
    for entity_id, key, is_now, *cells in rows.fetchall():
        cell = next((each for each in cells if each is not None), None)
        values.setdefault((entity_id, key), {})[is_now] = cell
    for (entity_id, key), sides in values.items():
        differs[entity_id][key] = ValueChange(sides.get(False), sides.get(True))
    return differs


def _node_names(lake: Snapshot, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of nodes by id; the kind of a node without a name."""
    wanted = sorted({each for each in ids if each is not None})
    prefixes = {each.partition(":")[0] for each in wanted}
    kinds = [name for name, prefix in PREFIXES.items() if prefix in prefixes]
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name, n.node_kind) FROM n",
        {"n": Slice(NODES.table, node_kind=kinds, node_id=wanted)},
    )
    return dict(LightReader(lake).rows(query)) if wanted else {}


def _text(value: Any) -> str:
    """Format a value for `detail`; a long one is cut."""
    text = value if isinstance(value, str) else json.encode(value).decode()
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."
