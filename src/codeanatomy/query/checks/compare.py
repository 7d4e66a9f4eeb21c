"""Compare all derived tables of two lakes row by row, without a JVM.

    comparison = compare_lakes("lake", "clean", ["flask"])
    comparison.total                      # 3 rows are in one of the lakes only
    comparison.tables["cpg_nodes"]        # DifferenceCounts(only_here=2, only_clean=1)
    comparison.differences[0].side        # "only_here"
    comparison.differences[0].differs     # ("line",): the other lake has a row of that key with another line

Both lakes are read at the table versions that their newest published runs pin. A table is a multiset: if one
lake has a row twice and the other once, the row differs once. Rows are grouped by all of their values, not by
a hash. The order of a list counts, that of a map does not. File times differ between two builds of the same
bytes and are not compared. A table that a lake lacks counts as empty; a stage that neither lake has built for
a repository is not compared.

Measured with two lakes of flask, 0.9 million rows together: 1.5 seconds of processor time.

Tests: `tests/unit/run/test_clean_build.py`, `tests/spark/test_clean_build.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import duckdb
from msgspec import Struct, json

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.read.duck import open_database, select_rows, sql_literal
from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import place

STAGES = ("extract", "normalize", "relate", "graph")
TABLES = tuple(table for table in catalog.TABLES if table.stage in STAGES)
# File times: they differ between two builds of the same bytes.
IGNORED_COLUMNS = ("mtime_ns", "timestamp_ms")
# Differing rows reported of each table by default, and characters of each.
LIMIT = 20
MAX_ROW_CHARS = 2000
# Tables with at most this many rows are copied: planning the read of many files twice takes longer.
MAX_COPIED_ROWS = 100_000

Side = Literal["only_here", "only_clean"]


class Difference(Struct, frozen=True):
    """A row that one lake has more often than the other."""

    table: str
    side: Side
    repo_id: str | None
    # Values of its primary key.
    key: dict[str, Any]
    # Columns in which it differs from the row of the same key in the other lake; empty if there is none.
    differs: tuple[str, ...]
    # How many more times.
    times: int
    path: str | None
    # Counted from 1.
    line: int | None
    # As JSON; a long one is cut.
    row: str

    @property
    def place(self) -> str:
        """The location as `path:line`."""
        return place(self.path, self.line)


class DifferenceCounts(Struct, frozen=True):
    """Number of rows of a table that are in one of the lakes only."""

    only_here: int
    only_clean: int


class Comparison(Struct, frozen=True):
    """The result of comparing two lakes."""

    # Compared rows of both lakes together, by table.
    rows: dict[str, int]
    # Tables that differ.
    tables: dict[str, DifferenceCounts]
    # The first differing rows of each table.
    differences: tuple[Difference, ...]

    @property
    def total(self) -> int:
        """Number of rows that are in one lake only, listed or not."""
        return sum(counts.only_here + counts.only_clean for counts in self.tables.values())


def compare_lakes(
    here: str | Snapshot, clean: str | Snapshot, repo_ids: Collection[str] | None = None, limit: int = LIMIT
) -> Comparison:
    """Compare all derived tables of two lakes, of the given repositories or of all that either has.

    At most `limit` differing rows of each table are returned.
    """
    lakes = [Snapshot.open(each) if isinstance(each, str) else each for each in (here, clean)]
    _check_repositories(lakes, repo_ids)
    rows: dict[str, int] = {}
    tables: dict[str, DifferenceCounts] = {}
    differences: list[Difference] = []
    with open_database() as database:
        for table in TABLES:
            if not any(table.name in lake.pins for lake in lakes):
                continue
            _create_view(database, table, lakes, _repository_condition(table, lakes, repo_ids))
            unequal = unequal_rows_sql(_names(table), "both_lakes")
            database.execute(f"CREATE OR REPLACE TEMP TABLE unequal AS {unequal}")
            rows[table.name], only_here, only_clean = database.execute(COUNTS).fetchone() or (0, 0, 0)
            if only_here or only_clean:
                tables[table.name] = DifferenceCounts(only_here, only_clean)
                differences += _first_differences(database, table, limit)
    return Comparison(rows, tables, tuple(differences))


def unequal_rows_sql(names: Sequence[str], relation: str) -> str:
    """Return SQL for the rows that one side of a relation has more often than the other.

    The column `side` of the relation is 1 or -1. The result column `more` is the number of copies that side 1
    has more than side -1.
    """
    listed = ", ".join(f'"{name}"' for name in names)
    more = "sum(side)::BIGINT"
    return f"SELECT {listed}, {more} AS more FROM {relation} GROUP BY {listed} HAVING {more} <> 0"


def _check_repositories(lakes: Sequence[Snapshot], repo_ids: Collection[str] | None) -> None:
    """Raise UnknownName for a repository that neither lake has."""
    known = {name for lake in lakes for name in lake.repositories}
    for name in repo_ids or ():
        if name not in known:
            raise UnknownName("repository", name, known)


def _repository_condition(table: Table, lakes: Sequence[Snapshot], repo_ids: Collection[str] | None) -> str:
    """Return the SQL condition on the rows to compare.

    Rows without a repository are compared unless repositories are given.
    """
    rows = [row for lake in lakes for row in lake.repositories.values()]
    built = {row.repo_id for row in rows if table.stage in row.plan_fingerprints}
    if repo_ids is None:
        unbuilt = ", ".join(sorted(sql_literal(row.repo_id) for row in rows if row.repo_id not in built))
        return f"coalesce(repo_id NOT IN ({unbuilt}), TRUE)" if unbuilt else "TRUE"
    return f"repo_id IN ({', '.join(map(sql_literal, sorted(built.intersection(repo_ids)))) or 'NULL'})"


def _create_view(
    database: duckdb.DuckDBPyConnection, table: Table, lakes: Sequence[Snapshot], condition: str
) -> None:
    """Create the view `both_lakes`: rows of both lakes, with side 1 for the first and -1 for the other."""
    values = ", ".join(map(_value, _columns(table)))
    sides, count = [], 0
    for lake, side in zip(lakes, (1, -1), strict=True):
        files = lake.files(table.name) if table.name in lake.pins else ()
        count += sum(file.rows or 0 for file in files)
        rows = select_rows(lake.root, table.name, files)
        sides.append(f"SELECT {values}, {side} AS side FROM ({rows}) WHERE {condition}")
    both = " UNION ALL ".join(sides)
    if count <= MAX_COPIED_ROWS:
        database.execute(f"CREATE OR REPLACE TEMP TABLE copied AS {both}")
        both = "FROM copied"
    database.execute(f"CREATE OR REPLACE TEMP VIEW both_lakes AS {both}")


def _names(table: Table) -> list[str]:
    return [column.name for column in _columns(table)]


def _columns(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name not in IGNORED_COLUMNS)


def _value(column: Column) -> str:
    """Return the SQL of a column; maps are sorted by key, so that equal maps have equal values."""
    if column.type.startswith("map<"):
        return f'map_from_entries(list_sort(map_entries("{column.name}"))) AS "{column.name}"'
    return f'"{column.name}"'


COUNTS = """
SELECT (SELECT count(*) FROM both_lakes), coalesce(sum(more) FILTER (more > 0), 0)::BIGINT,
  coalesce(-sum(more) FILTER (more < 0), 0)::BIGINT
FROM unequal
"""


def _first_differences(database: duckdb.DuckDBPyConnection, table: Table, limit: int) -> list[Difference]:
    """Return the first differing rows of a table in key order, so that both rows of a key are adjacent."""
    names = _names(table)
    order = ", ".join(f'"{name}"' for name in table.primary_key)
    same_key = " AND ".join(f'o."{name}" IS NOT DISTINCT FROM f."{name}"' for name in table.primary_key)
    differing = ", ".join(f'IF(o."{name}" IS DISTINCT FROM f."{name}", \'{name}\', NULL)' for name in names)
    path, line = (f'f."{name}"' if name in names else "NULL" for name in ("path", "line"))
    rows = database.execute(
        f"WITH f AS (SELECT * FROM unequal ORDER BY {order}, more DESC LIMIT {limit:d}),"
        f" o AS (SELECT DISTINCT ON ({order}, more > 0) * FROM unequal o SEMI JOIN f ON {same_key})"
        f" SELECT f.repo_id, {_json(table.primary_key)}, {_json(names)}, f.more, {path}, {line},"
        f" IF(o.more IS NULL, [], list_filter([{differing}], lambda c: c IS NOT NULL))"
        f" FROM f LEFT JOIN o ON {same_key} AND (o.more > 0) <> (f.more > 0)"
        f" ORDER BY {', '.join(f'f.{name}' for name in table.primary_key)}, f.more DESC"
    )
    return [
        Difference(
            table.name,
            "only_here" if more > 0 else "only_clean",
            repo_id,
            json.decode(key),
            tuple(differs),
            abs(more),
            place_path,
            place_line,
            row if len(row) <= MAX_ROW_CHARS else f"{row[:MAX_ROW_CHARS]}...",
        )
        for repo_id, key, row, more, place_path, place_line, differs in rows.fetchall()
    ]


def _json(names: Iterable[str]) -> str:
    """Return the SQL that encodes columns of a row as JSON."""
    fields = ", ".join(f'"{name}" := f."{name}"' for name in names)
    return f"to_json(struct_pack({fields}))::VARCHAR"
