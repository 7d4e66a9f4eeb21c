"""What a run has changed in the graph: nodes and edges that were added, removed or changed between two runs.

    found = diff_runs("lake", "20260501T12", kinds=["FUNCTION"])     # from that run to the newest
    found.counts[0]        # KindCount("node", "FUNCTION", added=2, removed=1, changed=0)
    found.rows[0].symbol   # "shop.cart.sell"; of an edge "shop.cart.sell -> shop.money.Price"

An element is the same in both runs if its id is. It has changed if a column or a property of it has. What
stands at a place is identified by it, so a function that was moved or edited is one that was removed and one
that was added; where a file has one of a kind and qualified name before and after, each of the two rows tells
of the other. A run pins a version of every table; data files that both versions have alike are not read, and
of those whose deletion vectors differ, only the rows that one of the two removes.

Tests: `tests/unit/query/test_run_diff.py`.
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

# Characters of a value in words.
SHOWN = 60

Element = Literal["node", "edge"]
How = Literal["added", "removed", "changed"]


class ValueChange(Struct, frozen=True):
    """A column or property before and after."""

    was: Any
    now: Any


class ElementChange(Struct, frozen=True):
    """A node or edge that is not the same in both runs."""

    change: How
    element: Element
    kind: str
    # Qualified name, or the name; of an edge those of its two ends.
    symbol: str | None
    # Of what was removed, where it was.
    path: str | None
    # Counted from 1.
    line: int | None
    # Columns and properties that differ; none of what was added or removed.
    differs: dict[str, ValueChange]
    # The same in words; of a node that was moved or edited, where the other one is.
    detail: str | None
    repo_id: str
    id: str


class KindCount(Struct, frozen=True):
    """Elements of a kind that are not the same in both runs."""

    element: Element
    kind: str
    added: int
    removed: int
    changed: int


class RunDiff(Struct, frozen=True):
    """What differs between two runs of a lake."""

    lake: str
    run_a: str
    run_b: str
    # In the catalogue's order of kinds.
    counts: tuple[KindCount, ...]
    # In the same order, of a kind by place.
    rows: tuple[ElementChange, ...]
    total: int
    # Rows that were left out.
    cut: int
    # How to get them.
    more: str | None
    # Limits of this answer, in words.
    notes: tuple[str, ...]


class _GraphTable(Struct, frozen=True):
    """A table of the graph, as it is compared."""

    element: Element
    table: str
    id: str
    kind: str
    kinds: tuple[str, ...]
    # What else is told of its rows, as a select list.
    told: str


class _RunPair(Struct, frozen=True):
    """The two states that are compared, and of what."""

    before: Snapshot
    after: Snapshot
    repo_id: str | None
    # All if there are none.
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
PARTS = (NODES, EDGES)
RANKS = f"[{', '.join(sql_literal(name) for part in PARTS for name in part.kinds)}]"
PROPS = "cpg_props"
VALUES = ("value_string", "value_int", "value_float", "value_bool", "value_json")


def diff_runs(
    root: str,
    run_a: str,
    run_b: str = LATEST,
    *,
    kinds: Collection[str] = (),
    repo_id: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> RunDiff:
    """What differs between two published runs, of all kinds and repositories or of some.

    A run is `latest`, its id or the first characters of it, or a time.
    """
    check_limit(limit)
    before, after = (Snapshot.open(root, None if run == LATEST else run) for run in (run_a, run_b))
    known = {*before.repositories, *after.repositories}
    if repo_id is not None and repo_id not in known:
        raise UnknownName("repository", repo_id, known)
    pair = _RunPair(before, after, repo_id, tuple(kind(name.upper()).name for name in kinds))
    # A connection of its own has temporary tables of its own.
    with translate_errors(), lookup_connection() as found:
        _open(found, pair)
        counts = tuple(KindCount(*row) for row in found.execute(COUNTED).fetchall())
        rows = _first(found, pair, limit)
        [moved] = found.execute("SELECT count(*) FROM moved").fetchone() or (0,)
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
        (f"nodes that were moved or edited, and so removed and added: {moved:,}",) if moved else (),
    )


def _open(found: duckdb.DuckDBPyConnection, pair: _RunPair) -> None:
    """Make the tables of what differs: `props`, of each part its rows before and after, `found`, `moved`."""
    found.execute(f"CREATE TEMP TABLE props AS {_apart(pair, PROPS, {})}")
    for part in PARTS:
        _open_part(found, pair, part)
    found.execute(f"CREATE TEMP TABLE found AS {' UNION ALL '.join(map(_found, PARTS))}")
    found.execute(f"CREATE TEMP TABLE moved AS {MOVED}")


def _open_part(found: duckdb.DuckDBPyConnection, pair: _RunPair, part: _GraphTable) -> None:
    """The rows of a table that differ, and those that differ in their properties alone."""
    element = part.element
    kinds = {part.kind: [name for name in part.kinds if name in pair.kinds]} if pair.kinds else {}
    found.execute(f"CREATE TEMP TABLE {element}_apart AS {_apart(pair, part.table, kinds)}")
    ids = found.execute(
        f"SELECT DISTINCT entity_id FROM props WHERE entity_kind = '{element}'"
        f" AND entity_id NOT IN (SELECT {part.id} FROM {element}_apart)"
    ).fetchall()
    same = {**kinds, part.id: [row[0] for row in ids]}
    files = _holding(pair.after.files(part.table) if ids else (), same)
    rows = select_rows(local_path(pair.after.root), part.table, files)
    found.execute(f"CREATE TEMP TABLE {element}_same AS {rows} WHERE {_condition(same)}")
    for side, sign in (("now", ">"), ("was", "<")):
        found.execute(
            f"CREATE TEMP VIEW {element}_{side} AS FROM {element}_same UNION ALL"
            f" SELECT * EXCLUDE more FROM {element}_apart WHERE more {sign} 0"
        )


def _apart(pair: _RunPair, name: str, wanted: Mapping[str, Collection[str]]) -> str:
    """The rows of a table that differ and have certain values; rows of both are not read."""
    if pair.repo_id is not None:
        wanted = {**wanted, "repo_id": [pair.repo_id]}
    before, after = ({file.path: file for file in lake.files(name)} for lake in (pair.before, pair.after))
    sides = {
        -1: _side(pair.before, name, before, after, wanted),
        1: _side(pair.after, name, after, before, wanted),
    }
    both = " UNION ALL ".join(f"SELECT *, {side} AS side FROM ({rows})" for side, rows in sides.items())
    return unequal_rows_sql(catalog.table(name).column_names, f"({both})")


def _side(
    lake: Snapshot,
    name: str,
    files: Mapping[str, LoggedFile],
    known: Mapping[str, LoggedFile],
    wanted: Mapping[str, Collection[str]],
) -> str:
    """The rows of a version whose data file the other version lacks, or has without them."""
    root = local_path(lake.root)
    parts = [
        select_rows(root, name, _holding([file for path, file in files.items() if path not in known], wanted))
    ]
    for file in _holding([file for path, file in files.items() if known.get(path, file) != file], wanted):
        removed, removed_there = (
            read_vector(location(root, name), each.vector) for each in (file, known[file.path])
        )
        if removed_there - removed:
            parts.append(_standing_at(root, name, file, removed_there - removed))
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) WHERE {_condition(wanted)}"


def _standing_at(root: str, name: str, file: LoggedFile, positions: BitMap64) -> str:
    """The rows of a data file at certain positions, in the catalogue's columns."""
    rows = rows_at([f"{location(root, name)}/{file.path}"], encode_bits(positions))
    constants = "".join(f", {sql_literal(value)} AS {key}" for key, value in file.partition.items())
    stored = f"COLUMNS(lambda c: c NOT IN ({', '.join(map(sql_literal, (ROW_NUMBER, *file.partition)))}))"
    names = ", ".join(f'"{each}"' for each in catalog.table(name).column_names)
    # What the file lacks is null, of the right type.
    nothing = select_rows(root, name, ())
    return f"SELECT {names} FROM ({nothing} UNION ALL BY NAME SELECT {stored}{constants} FROM {rows})"


def _holding(files: Iterable[LoggedFile], wanted: Mapping[str, Collection[str]]) -> list[LoggedFile]:
    """The files that may hold rows with certain values."""
    ordered = {column: sorted(values) for column, values in wanted.items()}
    return [file for file in files if all(file.may_hold(*each) for each in ordered.items())]


def _condition(wanted: Mapping[str, Collection[str]]) -> str:
    listed = {column: ", ".join(map(sql_literal, values)) or "NULL" for column, values in wanted.items()}
    return " AND ".join(f"{column} IN ({values})" for column, values in listed.items()) or "TRUE"


def _found(part: _GraphTable) -> str:
    """What differs of a part, with its place: of what was removed, where it was."""
    return (
        f"SELECT '{part.element}' AS element, change, {part.kind} AS kind, repo_id, {part.id} AS id, path,"
        f" line, {part.told} FROM ("
        f" SELECT n.*, IF(w.{part.id} IS NULL, 'added', 'changed') AS change FROM {part.element}_now n"
        f" LEFT JOIN {part.element}_was w USING (repo_id, {part.id})"
        f" UNION ALL SELECT *, 'removed' FROM {part.element}_was w"
        f" ANTI JOIN {part.element}_now n USING (repo_id, {part.id}))"
    )


COUNTED = f"""
SELECT element, kind, count(*) FILTER (change = 'added'), count(*) FILTER (change = 'removed'),
  count(*) FILTER (change = 'changed')
FROM found GROUP BY element, kind ORDER BY element DESC, list_position({RANKS}, kind)
"""
# Nodes that a file has one of before and after, by kind and qualified name, but not at the same place.
MOVED = """
SELECT repo_id, kind, qualname, path, min(line) FILTER (change = 'removed') AS was,
  min(line) FILTER (change = 'added') AS now
FROM found WHERE qualname IS NOT NULL AND change <> 'changed' GROUP BY repo_id, kind, qualname, path
HAVING count(*) FILTER (change = 'removed') = 1 AND count(*) FILTER (change = 'added') = 1
"""
FIRST = f"""
SELECT f.element, f.change, f.kind, f.repo_id, f.id, f.path, f.line, f.symbol, f.src, f.dst,
  m.repo_id IS NOT NULL, IF(f.change = 'added', m.was, m.now)
FROM found f
LEFT JOIN moved m ON m.repo_id = f.repo_id AND m.kind = f.kind AND m.qualname = f.qualname AND m.path = f.path
  AND f.change <> 'changed'
ORDER BY f.element DESC, list_position({RANKS}, f.kind), f.path, f.line, f.symbol, f.change, f.id DEFAULT_LIMIT $limit
"""


def _first(found: duckdb.DuckDBPyConnection, pair: _RunPair, limit: int) -> list[ElementChange]:
    """The first rows, in their order."""
    rows = found.execute(FIRST, {"limit": limit}).fetchall()
    changed = [row[4] for row in rows if row[1] == "changed"]
    differs = _differing(found, changed)
    ends = {
        is_gone: _names(
            lake, [each for row in rows if (row[1] == "removed") == is_gone for each in row[8:10]]
        )
        for lake, is_gone in ((pair.before, True), (pair.after, False))
    }
    told = []
    for element, change, name, repo_id, entity_id, path, line, called, src, dst, is_moved, other in rows:
        names = ends[change == "removed"]
        symbol = f"{names.get(src, src)} -> {names.get(dst, dst)}" if element == "edge" else called
        values = differs.get(entity_id, {})
        detail = ", ".join(f"{key}: {_text(each.was)} -> {_text(each.now)}" for key, each in values.items())
        if is_moved:
            detail = f"{'before' if change == 'added' else 'now'}: {place(path, other)}"
        told.append(
            ElementChange(change, element, name, symbol, path, line, values, detail or None, repo_id, entity_id)
        )
    return told


def _differing(found: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> dict[str, dict[str, ValueChange]]:
    """The columns and properties that differ, of elements that have changed."""
    differs: dict[str, dict[str, ValueChange]] = {entity_id: {} for entity_id in ids}
    listed = ", ".join(map(sql_literal, ids)) or "NULL"
    for part in PARTS:
        rows = found.execute(
            f"SELECT w, n FROM {part.element}_now n JOIN {part.element}_was w USING (repo_id, {part.id})"
            f" WHERE {part.id} IN ({listed})"
        )
        for was, now in rows.fetchall():
            differs[now[part.id]] = {
                name: ValueChange(was[name], now[name]) for name in now if was[name] != now[name]
            }
    values: dict[tuple[str, str], dict[bool, Any]] = {}
    rows = found.execute(
        f"SELECT entity_id, prop_key, more > 0, {', '.join(VALUES)} FROM props WHERE entity_id IN ({listed})"
        " ORDER BY entity_id, prop_key"
    )
    for entity_id, key, is_now, *cells in rows.fetchall():
        cell = next((each for each in cells if each is not None), None)
        values.setdefault((entity_id, key), {})[is_now] = cell
    for (entity_id, key), sides in values.items():
        differs[entity_id][key] = ValueChange(sides.get(False), sides.get(True))
    return differs


def _names(lake: Snapshot, ids: Iterable[str | None]) -> dict[str, str]:
    """What nodes are called, by id; those without a name by their kind."""
    wanted = sorted({each for each in ids if each is not None})
    prefixes = {each.partition(":")[0] for each in wanted}
    kinds = [name for name, prefix in PREFIXES.items() if prefix in prefixes]
    query = Query(
        "SELECT n.node_id, coalesce(n.qualname, n.name, n.node_kind) FROM n",
        {"n": Slice(NODES.table, node_kind=kinds, node_id=wanted)},
    )
    return dict(LightReader(lake).rows(query)) if wanted else {}


def _text(value: Any) -> str:
    """A value in words, not too long."""
    text = value if isinstance(value, str) else json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
