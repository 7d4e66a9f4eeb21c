"""Compare the graphs of two runs: nodes and edges that were added, removed or changed.

    diff = diff_runs("lake", "20260501T12", kinds=["FUNCTION"])     # from that run to the newest
    diff.counts[0]        # KindCount("node", "FUNCTION", added=2, removed=1, changed=0)
    diff.rows[0].symbol   # "shop.cart.sell"; of an edge "shop.cart.sell -> shop.money.Price"

An element is the same in both runs if its id is, and changed if one of its columns or properties is.
Positions are not compared: what only moved is the same. A definition (module, class or function) is also
changed if anything inside of it is added, removed or changed:

    def f():           # changed, inside: 6 nodes and 9 edges
        print(1)       # was missing in run A
    def g(): ...       # one line further down: the same

`change_tables` finds the changes. Tests: `tests/unit/query/test_run_diff.py`, `tests/spark/test_run_diff.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import duckdb
from msgspec import Struct, json

from codeanatomy.catalog.kinds import kind
from codeanatomy.delta.read.duck import lookup_connection, sql_literal, translate_errors
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.lake.snapshot import LATEST, Snapshot
from codeanatomy.node_ids import PREFIXES
from codeanatomy.query.answers import DEFAULT_LIMIT, check_limit, place
from codeanatomy.query.diff.change_tables import (
    GRAPH_TABLES,
    NODES,
    POSITIONS,
    Element,
    RunPair,
    create_change_tables,
)
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice

VALUE_COLUMNS = ("value_string", "value_int", "value_float", "value_bool", "value_json")
# Characters of a value in `detail`.
MAX_VALUE_CHARS = 60

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
    # Line before, of a changed element.
    was_line: int | None
    # Columns and properties that differ; empty for added and removed elements.
    differs: dict[str, ValueChange]
    # Number of nodes and edges inside of a changed definition that were added, removed or changed.
    inside: dict[Element, int]
    # The location before, if it is another one, and the differences as text.
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
    _refuse_other_ids(before, after, [repo_id] if repo_id is not None else known)
    pair = RunPair(before, after, repo_id, tuple(kind(name.upper()).name for name in kinds))
    # Temporary tables belong to the connection.
    with translate_errors(), lookup_connection() as connection:
        create_change_tables(connection, pair)
        counts = tuple(KindCount(*row) for row in connection.execute(COUNTS).fetchall())
        rows = _first_changes(connection, pair, limit)
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
        (),
    )


def _refuse_other_ids(before: Snapshot, after: Snapshot, repo_ids: Iterable[str]) -> None:
    """Raise UsageError for a repository whose ids follow another recipe in one of the runs."""
    for repo_id in sorted(repo_ids):
        rows = [lake.repositories[repo_id] for lake in (before, after) if repo_id in lake.repositories]
        if len({row.id_version for row in rows}) > 1:
            was, now = (row.id_version for row in rows)
            raise UsageError(
                f"ids of {repo_id} are of version {was} in run {before.run_id}, of version {now} in run"
                f" {after.run_id}: no node can be found again",
                "compare with a run that was built later; `codeanatomy runs` lists the runs",
            )


RANKS = f"[{', '.join(sql_literal(name) for table in GRAPH_TABLES for name in table.kinds)}]"
COUNTS = f"""
SELECT element, kind, count(*) FILTER (change = 'added'), count(*) FILTER (change = 'removed'),
  count(*) FILTER (change = 'changed')
FROM changes GROUP BY element, kind ORDER BY element DESC, list_position({RANKS}, kind)
"""
FIRST_CHANGES = f"""
SELECT element, change, kind, repo_id, id, path, line, was_line, symbol, src, dst, nodes, edges FROM changes
ORDER BY element DESC, list_position({RANKS}, kind), path, line, symbol, change, id LIMIT $limit
"""


def _first_changes(connection: duckdb.DuckDBPyConnection, pair: RunPair, limit: int) -> list[ElementChange]:
    """Return the first `limit` changes, in order."""
    rows = connection.execute(FIRST_CHANGES, {"limit": limit}).fetchall()
    changed = [row[4] for row in rows if row[1] == "changed"]
    differs = _value_changes(connection, changed)
    ends = {
        is_removed: _node_names(
            lake, [each for row in rows if (row[1] == "removed") == is_removed for each in row[9:11]]
        )
        for lake, is_removed in ((pair.before, True), (pair.after, False))
    }
    changes = []
    for element, change, name, repo_id, entity_id, path, line, was_line, symbol, src, dst, *counts in rows:
        names = ends[change == "removed"]
        inside: dict[Element, int] = {
            table.element: count for table, count in zip(GRAPH_TABLES, counts, strict=True) if count
        }
        values = differs.get(entity_id, {})
        details = [f"before: {place(path, was_line)}"] if change == "changed" and was_line != line else []
        if inside:
            listed = (f"{count:,} {each}{'s' if count > 1 else ''}" for each, count in inside.items())
            details.append(f"inside: {' and '.join(listed)}")
        details += [f"{key}: {_text(each.was)} -> {_text(each.now)}" for key, each in values.items()]
        changes.append(
            ElementChange(
                change,
                element,
                name,
                f"{names.get(src, src)} -> {names.get(dst, dst)}" if element == "edge" else symbol,
                path,
                line,
                was_line,
                values,
                inside,
                ", ".join(details) or None,
                repo_id,
                entity_id,
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
                name: ValueChange(was[name], now[name])
                for name in now
                if name not in POSITIONS and was[name] != now[name]
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
