"""List the rows of a table that were inserted, removed or changed between two runs, from its change feed.

    found = table_changes("lake", "repo_files_v1", "20260501T12", repo_id="shop")
    found.rows[0]         # {"change": "changed", "path": "cart.py", ..., "was": {"size_bytes": 410, ...}}
    found.total           # 3: rows without the limit
    change_counts("lake", "20260501T12").counts[0]      # ChangeCount("repo_files_v1", "shop", 1, 0, 2)

What is listed is the net effect of all commits of the window (`change_windows`). A row is known by its
primary key: it was changed if the key is there before and after, with other values; one that was deleted and
inserted equal, as in a build of all files, was not. With `every_commit` the feed itself is listed, each row
with `_change_type`, `_commit_version` and `_commit_timestamp`.

The feed is read twice: once for keys and hashes of rows, whose sums over insertions (1) and deletions (-1)
are the net effect, and once for the values of the rows of a page. So memory does not depend on the size of
rows. In a Spark session `query.engines.spark_changes` gives the same rows, and `spark_change_pages` the same
pages.

Tests: `tests/unit/query/test_changes.py`, `tests/spark/test_changes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

import duckdb
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.light_feed import (
    CHANGE_COLUMNS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETIONS,
    REPOSITORY,
    select_changes,
)
from codeanatomy.delta.read.duck import lookup_connection, sql_literal, translate_errors
from codeanatomy.errors import FeedLost, UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import DEFAULT_LIMIT, check_limit
from codeanatomy.query.diff.change_windows import (
    READ_INSTEAD,
    RunWindow,
    feed_tables,
    open_window,
    require_feed,
)

# Columns of the net effect beside those of the table.
CHANGE, WAS = "change", "was"
# Columns that may have the line of a row, counted from 1.
LINE_COLUMNS = ("line", "diag_line_start")


class TableChanges(Struct, frozen=True):
    """A page of the changes of a table."""

    lake: str
    table: str
    # None: from before the first run.
    run_a: str | None
    run_b: str
    # Window of the feed; the first is after the last if the table was not written.
    first_version: int
    last_version: int
    # Keys of each row, in order.
    columns: tuple[str, ...]
    # `was` has the values before of the columns that differ.
    rows: tuple[dict[str, Any], ...]
    total: int
    # Rows after this page.
    cut: int
    # The option that returns the next page.
    more: str | None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))


class ChangeCount(Struct, frozen=True):
    """Number of rows of a table and a repository that differ."""

    table: str
    repo_id: str | None
    inserted: int
    removed: int
    changed: int


class ChangeCounts(Struct, frozen=True):
    """Number of changes of all tables with a change feed; those without changes are left out."""

    lake: str
    run_a: str | None
    run_b: str
    # Tables that were read.
    tables: tuple[str, ...]
    counts: tuple[ChangeCount, ...]


def table_changes(
    root: str,
    name: str,
    since: str,
    until: str | None = None,
    *,
    repo_id: str | None = None,
    every_commit: bool = False,
    limit: int = DEFAULT_LIMIT,
    offset: int = 0,
    newest: Snapshot | None = None,
    allow_out_of_range: bool = False,
) -> TableChanges:
    """List the rows of a table that changed after a run or time, up to another one or the newest.

    Rows are ordered by repository, path and line, those of `every_commit` by version first.
    """
    check_page(limit, offset)
    window = _open(root, since, until, repo_id, newest, allow_out_of_range=allow_out_of_range)
    table = require_feed(window, name)
    versions = window.versions(name)
    with translate_errors(), lookup_connection() as connection:
        feed = _select_feed(root, name, versions, repo_id, skip_undone=not every_commit)
        if every_commit:
            rows, total = _commit_rows(connection, table, feed, limit, offset)
        else:
            rows, total = _net_rows(connection, table, feed, limit, offset)
    columns = page_columns(table, every_commit=every_commit)
    return make_page(root, window, name, columns, rows, total, offset)


def change_counts(
    root: str,
    since: str,
    until: str | None = None,
    *,
    repo_id: str | None = None,
    newest: Snapshot | None = None,
    allow_out_of_range: bool = False,
) -> ChangeCounts:
    """Count the rows that changed after a run or time, by table and repository."""
    window = _open(root, since, until, repo_id, newest, allow_out_of_range=allow_out_of_range)
    names = tuple(name for name in feed_tables() if name in window.after.pins)
    counts: list[ChangeCount] = []
    for name in names:
        feed = _select_feed(root, name, window.versions(name), repo_id, skip_undone=True)
        with translate_errors(), lookup_connection() as connection:
            _create_net_tables(connection, catalog.table(name), feed)
            counts += (ChangeCount(name, *row) for row in connection.execute(COUNTS).fetchall())
    return ChangeCounts(root, window.run_a, window.after.run_id, names, tuple(counts))


def check_page(limit: int, offset: int) -> None:
    """Raise UsageError for a limit or an offset that cannot be."""
    check_limit(limit)
    if type(offset) is not int or offset < 0:
        raise UsageError(f"--offset must be 0 or more, got {offset!r}", "use an offset from 0")


def make_page(
    root: str,
    window: RunWindow,
    name: str,
    columns: tuple[str, ...],
    rows: Sequence[dict[str, Any]],
    total: int,
    offset: int,
) -> TableChanges:
    """Return the rows of a page with what they are part of."""
    versions = window.versions(name)
    maps = [column.name for column in catalog.table(name).columns if column.type.startswith("map<")]
    for row in rows:
        _sort_maps(row, maps)
        _sort_maps(row.get(WAS) or {}, maps)
    cut = max(0, total - offset - len(rows))
    return TableChanges(
        root,
        name,
        window.run_a,
        window.after.run_id,
        versions.start,
        versions.stop - 1,
        columns,
        tuple(rows),
        total,
        cut,
        f"--offset {offset + len(rows)}" if cut else None,
    )


def _sort_maps(row: dict[str, Any], names: Sequence[str]) -> None:
    """Give maps the order of their keys: engines return them in different ones."""
    for name in names:
        if row.get(name):
            row[name] = dict(sorted(row[name].items()))


def page_columns(table: Table, *, every_commit: bool) -> tuple[str, ...]:
    """Return the columns of a page, in order."""
    return (*CHANGE_COLUMNS, *table.column_names) if every_commit else (CHANGE, *table.column_names, WAS)


def net_order(table: Table) -> tuple[str, ...]:
    """Return the columns that order net changes; nulls come last."""
    return tuple(dict.fromkeys((*_place_columns(table), *key_columns(table))))


def commit_order(table: Table) -> tuple[str, ...]:
    """Return the columns that order the rows of a feed; nulls come last."""
    return (COMMIT_VERSION, *_place_columns(table), *table.primary_key, CHANGE_TYPE)


def former_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row before it was changed, of the columns that differ."""
    return {name: was for name, was in before.items() if was != after[name]}


def line_of(row: Mapping[str, Any]) -> int | None:
    """Return the line of a row, counted from 1; None if the table has none."""
    return next((row[name] for name in LINE_COLUMNS if row.get(name) is not None), None)


def key_columns(table: Table) -> tuple[str, ...]:
    """Return the columns by which a row is known: its repository and primary key."""
    return tuple(dict.fromkeys((REPOSITORY, *table.primary_key)))


def _open(
    root: str,
    since: str,
    until: str | None,
    repo_id: str | None,
    newest: Snapshot | None,
    *,
    allow_out_of_range: bool,
) -> RunWindow:
    window = open_window(root, since, until, newest=newest, allow_out_of_range=allow_out_of_range)
    window.check_repository(repo_id)
    return window


def _select_feed(root: str, name: str, versions: range, repo_id: str | None, *, skip_undone: bool) -> str:
    """Return the SQL query for the feed of a window."""
    try:
        return select_changes(
            root,
            name,
            versions.start,
            versions.stop - 1,
            repo_id=repo_id,
            skip_undone=skip_undone,
            # A table that was not written in the window.
            allow_out_of_range=True,
        )
    except FeedLost as lost:
        raise FeedLost(lost.message, READ_INSTEAD) from lost


def _commit_rows(
    connection: duckdb.DuckDBPyConnection, table: Table, feed: str, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of the rows of a feed, and the number of all."""
    (total,) = connection.execute(f"SELECT count(*) FROM ({feed})").fetchone() or (0,)
    names = (*CHANGE_COLUMNS, *table.column_names)
    listed = ", ".join(map(_quoted, names))
    order = ", ".join(map(_quoted, commit_order(table)))
    rows = connection.execute(f"SELECT {listed} FROM ({feed}) ORDER BY {order} LIMIT {limit} OFFSET {offset}")
    page = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    for row in page:
        row[COMMIT_TIMESTAMP] = row[COMMIT_TIMESTAMP].replace(tzinfo=UTC)
    return page, total


def _net_rows(
    connection: duckdb.DuckDBPyConnection, table: Table, feed: str, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of the net effect of a feed, and the number of all rows of it."""
    _create_net_tables(connection, table, feed)
    (total,) = connection.execute("SELECT count(*) FROM net_keys").fetchone() or (0,)
    keys = key_columns(table)
    order = ", ".join(map(_quoted, net_order(table)))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE page AS SELECT *, row_number() OVER (ORDER BY {order}) AS number"
        f" FROM net_keys ORDER BY {order} LIMIT {limit} OFFSET {offset}"
    )
    names = table.column_names
    values = ", ".join(f"any_value(f.{_quoted(name)})" for name in names)
    rows = connection.execute(
        f"SELECT page.number, page.change, contents.copies > 0 AS is_now, {values}"
        f" FROM ({_with_content(table, feed)}) f"
        f" JOIN page ON {_same(keys, 'f', 'page')}"
        f" JOIN contents ON {_same(keys, 'f', 'contents')} AND f.content = contents.content"
        " GROUP BY ALL ORDER BY page.number, is_now"
    )
    changes: dict[int, dict[str, Any]] = {}
    for number, change, _, *cells in rows.fetchall():
        row = dict(zip(names, cells, strict=True))
        if number not in changes:
            changes[number] = {CHANGE: change, **row, WAS: None}
        else:
            # The row before comes first.
            before = {name: changes[number][name] for name in names}
            changes[number] = {CHANGE: change, **row, WAS: former_values(before, row)}
    return list(changes.values()), total


def _create_net_tables(connection: duckdb.DuckDBPyConnection, table: Table, feed: str) -> None:
    """Create temporary tables of the contents (row hashes) that differ, and of their keys."""
    keys = ", ".join(map(_quoted, key_columns(table)))
    places = [name for name in _place_columns(table) if name not in key_columns(table)]
    deletions = ", ".join(map(sql_literal, DELETIONS))
    copies = f"sum(IF({CHANGE_TYPE} IN ({deletions}), -1, 1))::BIGINT"
    located = "".join(f", any_value({_quoted(name)}) AS {_quoted(name)}" for name in places)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE contents AS SELECT {keys}, content, {copies} AS copies{located}"
        f" FROM ({_with_content(table, feed)}) GROUP BY {keys}, content HAVING {copies} <> 0"
    )
    # The place of a changed row is the one it has now.
    located = "".join(f", arg_max({_quoted(name)}, copies) AS {_quoted(name)}" for name in places)
    change = (
        "CASE WHEN min(copies) > 0 THEN 'inserted' WHEN max(copies) < 0 THEN 'removed' ELSE 'changed' END"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE net_keys AS SELECT {keys}, {change} AS change{located}"
        f" FROM contents GROUP BY {keys}"
    )


COUNTS = f"""
SELECT {REPOSITORY}, count(*) FILTER (change = 'inserted'), count(*) FILTER (change = 'removed'),
  count(*) FILTER (change = 'changed')
FROM net_keys GROUP BY {REPOSITORY} ORDER BY {REPOSITORY}
"""


def _with_content(table: Table, feed: str) -> str:
    """Return the SQL query for a feed with a hash of each row."""
    values = ", ".join(map(_hashed, table.columns))
    return f"SELECT *, hash(row({values})) AS content FROM ({feed})"


def _hashed(column: Column) -> str:
    """Return the SQL of a value to hash; maps are sorted by key, so that equal maps have equal values."""
    name = _quoted(column.name)
    return f"list_sort(map_entries({name}))" if column.type.startswith("map<") else name


def _place_columns(table: Table) -> tuple[str, ...]:
    names = table.column_names
    return tuple(name for name in (REPOSITORY, "path", *LINE_COLUMNS) if name in names)


def _same(names: Sequence[str], left: str, right: str) -> str:
    """Return the SQL condition that columns are equal, or both null."""
    pairs = (f"{left}.{_quoted(name)} IS NOT DISTINCT FROM {right}.{_quoted(name)}" for name in names)
    return " AND ".join(pairs)


def _quoted(name: str) -> str:
    return f'"{name}"'
