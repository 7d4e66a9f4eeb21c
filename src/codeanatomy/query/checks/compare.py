"""Whether two lakes hold the same rows of some repositories: every derived table, row for row. No JVM.

    found = compare_lakes("lake", "clean", ["flask"])
    found.total                      # 3: so many rows are in one of the two only
    found.tables["cpg_nodes"]        # DifferenceCounts(only_here=2, only_clean=1)
    found.differences[0].side        # "only_here"
    found.differences[0].differs     # ("line",): the other lake has a row of that key, with another line

Both are looked at as readers see them, at the table versions that their newest published runs pin. A table is
a multiset: of a row that one lake has twice and the other once, one is in one lake only. Rows are grouped by
all of their values, not by a hash of them. The order of a list counts, that of a map does not. Times of files
are no result, and not compared. A table that a lake lacks is empty; of a repository that both lakes were last
built without a stage of, that stage is not compared.

Measured with two lakes of flask, 0.9 million rows together: 1.5 seconds of processor time.

Tests: `tests/unit/run/test_against_clean.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import duckdb
from msgspec import Struct, json

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.read.duck import local_path, open_database, select_rows, sql_literal
from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import place

STAGES = ("extract", "normalize", "relate", "graph")
TABLES = tuple(table for table in catalog.TABLES if table.stage in STAGES)
# Times of files: they differ between two builds of the same bytes.
UNCOMPARED = ("mtime_ns", "timestamp_ms")
# Rows of each table that are told, if nothing is said, and characters of each.
LIMIT = 20
CHARS = 2000
# Tables of up to so many rows are copied into the database: to plan reads of many files twice takes longer.
SMALL = 100_000

Side = Literal["only_here", "only_clean"]


class Difference(Struct, frozen=True):
    """A row that one lake has more often than the other."""

    table: str
    side: Side
    repo_id: str | None
    # Values of its primary key.
    key: dict[str, Any]
    # Columns in which the row of the same key that only the other lake has is different; none without such a
    # row.
    differs: tuple[str, ...]
    # How many times more.
    times: int
    path: str | None
    # Counted from 1.
    line: int | None
    # As JSON; a long one is cut.
    row: str

    @property
    def place(self) -> str:
        """As an editor opens it."""
        return place(self.path, self.line)


class DifferenceCounts(Struct, frozen=True):
    """Rows of a table that are in one of the lakes only."""

    only_here: int
    only_clean: int


class Comparison(Struct, frozen=True):
    """What was compared, and what differs."""

    # By table, those of both lakes: rows that were compared.
    rows: dict[str, int]
    # Of the tables that differ.
    tables: dict[str, DifferenceCounts]
    # Some of the rows, by table.
    differences: tuple[Difference, ...]

    @property
    def total(self) -> int:
        """How many rows are in one lake only, told or not."""
        return sum(counts.only_here + counts.only_clean for counts in self.tables.values())


def compare_lakes(
    here: str | Snapshot, clean: str | Snapshot, repo_ids: Collection[str] | None = None, limit: int = LIMIT
) -> Comparison:
    """Compare all derived tables of two lakes, of some repositories or of all that either has.

    Of each table at most so many rows are told.
    """
    lakes = [Snapshot.open(each) if isinstance(each, str) else each for each in (here, clean)]
    _refuse_unknown(lakes, repo_ids)
    rows: dict[str, int] = {}
    tables: dict[str, DifferenceCounts] = {}
    told: list[Difference] = []
    with open_database() as found:
        for table in TABLES:
            if not any(table.name in lake.pins for lake in lakes):
                continue
            _open(found, table, lakes, _wanted(table, lakes, repo_ids))
            found.execute(f"CREATE OR REPLACE TEMP TABLE apart AS {apart(_names(table), 'both_lakes')}")
            rows[table.name], only_here, only_clean = found.execute(COUNTED).fetchone() or (0, 0, 0)
            if only_here or only_clean:
                tables[table.name] = DifferenceCounts(only_here, only_clean)
                told += _told(found, table, limit)
    return Comparison(rows, tables, tuple(told))


def unequal_rows_sql(names: Sequence[str], relation: str) -> str:
    """The rows of a relation that one side has more often, with how much more often the side of 1 has them.

    The column `side` is 1 or -1.
    """
    listed = ", ".join(f'"{name}"' for name in names)
    more = "sum(side)::BIGINT"
    return f"SELECT {listed}, {more} AS more FROM {relation} GROUP BY {listed} HAVING {more} <> 0"


def _refuse_unknown(lakes: Sequence[Snapshot], repo_ids: Collection[str] | None) -> None:
    """A repository that neither lake has is a mistake."""
    known = {name for lake in lakes for name in lake.repositories}
    for name in repo_ids or ():
        if name not in known:
            raise UnknownName("repository", name, known)


def _wanted(table: Table, lakes: Sequence[Snapshot], repo_ids: Collection[str] | None) -> str:
    """The condition for rows to be compared: rows of nobody are, unless repositories are named."""
    rows = [row for lake in lakes for row in lake.repositories.values()]
    made = {row.repo_id for row in rows if table.stage in row.plan_fingerprints}
    if repo_ids is None:
        unmade = ", ".join(sorted(sql_literal(row.repo_id) for row in rows if row.repo_id not in made))
        return f"coalesce(repo_id NOT IN ({unmade}), TRUE)" if unmade else "TRUE"
    return f"repo_id IN ({', '.join(map(sql_literal, sorted(made.intersection(repo_ids)))) or 'NULL'})"


def _open(found: duckdb.DuckDBPyConnection, table: Table, lakes: Sequence[Snapshot], wanted: str) -> None:
    """The rows of both lakes, with 1 for those of the first and -1 for those of the other."""
    values = ", ".join(map(_value, _columns(table)))
    sides, count = [], 0
    for lake, side in zip(lakes, (1, -1), strict=True):
        files = lake.files(table.name) if table.name in lake.pins else ()
        count += sum(file.rows or 0 for file in files)
        rows = select_rows(local_path(lake.root), table.name, files)
        sides.append(f"SELECT {values}, {side} AS side FROM ({rows}) WHERE {wanted}")
    both = " UNION ALL ".join(sides)
    if count <= SMALL:
        found.execute(f"CREATE OR REPLACE TEMP TABLE held AS {both}")
        both = "FROM held"
    found.execute(f"CREATE OR REPLACE TEMP VIEW both_lakes AS {both}")


def _names(table: Table) -> list[str]:
    return [column.name for column in _columns(table)]


def _columns(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name not in UNCOMPARED)


def _value(column: Column) -> str:
    """A column whose values are the same if they mean the same."""
    if column.type.startswith("map<"):
        return f'map_from_entries(list_sort(map_entries("{column.name}"))) AS "{column.name}"'
    return f'"{column.name}"'


COUNTED = """
SELECT (SELECT count(*) FROM both_lakes), coalesce(sum(more) FILTER (more > 0), 0)::BIGINT,
  coalesce(-sum(more) FILTER (more < 0), 0)::BIGINT
FROM apart
"""


def _told(found: duckdb.DuckDBPyConnection, table: Table, limit: int) -> list[Difference]:
    """The first rows of a table that differ, by their keys: the two of a key are beside each other."""
    names = _names(table)
    order = ", ".join(f'"{name}"' for name in table.primary_key)
    of_key = " AND ".join(f'o."{name}" IS NOT DISTINCT FROM f."{name}"' for name in table.primary_key)
    unlike = ", ".join(f'IF(o."{name}" IS DISTINCT FROM f."{name}", \'{name}\', NULL)' for name in names)
    path, line = (f'f."{name}"' if name in names else "NULL" for name in ("path", "line"))
    rows = found.execute(
        f"WITH f AS (SELECT * FROM apart ORDER BY {order}, more DESC LIMIT {limit:d}),"
        f" o AS (SELECT DISTINCT ON ({order}, more > 0) * FROM apart o SEMI JOIN f ON {of_key})"
        f" SELECT f.repo_id, {_packed(table.primary_key)}, {_packed(names)}, f.more, {path}, {line},"
        f" IF(o.more IS NULL, [], list_filter([{unlike}], lambda c: c IS NOT NULL))"
        f" FROM f LEFT JOIN o ON {of_key} AND (o.more > 0) <> (f.more > 0)"
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
            row if len(row) <= CHARS else f"{row[:CHARS]}...",
        )
        for repo_id, key, row, more, place_path, place_line, differs in rows.fetchall()
    ]


def _packed(names: Iterable[str]) -> str:
    """Columns of a row as JSON."""
    fields = ", ".join(f'"{name}" := f."{name}"' for name in names)
    return f"to_json(struct_pack({fields}))::VARCHAR"
