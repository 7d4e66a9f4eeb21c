"""Which rows of a local table belong to some owners: whole data files, and positions in others.

    owned = Owned("owner_file_id", frozenset({"file:3b1c..."}))
    leaving(nodes, "/lake/graph/cpg_nodes", opened(nodes, "/lake/graph/cpg_nodes").files, owned)
    [Leaving(file, 12, 9000, positions=BitMap64([40, ..., 51]))]

    Owned("owner_file_id", frozenset(), picked=Picked("edge_id", ids, owners))      # single rows of owners

Files whose statistics or partition exclude the owners are not opened (`delta.read.predicate`); of the others
DuckDB reads the column of owners, and that by which rows are picked, as far as their row groups may hold one.
Tests: `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct
from pyroaring import BitMap64

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.read.duck import (
    lookup_connection,
    parquet_relation,
    sql_literal,
    sql_path_list,
    translate_errors,
)
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.predicate import And, InList, IsNull, Or, Predicate, Term

REPOSITORY = "repo_id"
# The picked values, as DuckDB knows them.
PICKED = "picked_values"
# The first and the last position of rows that stand together, as those of an owner mostly do.
RUNS = """
SELECT filename, min(position), max(position) FROM (
  SELECT filename, position,
    position - row_number() OVER (PARTITION BY filename ORDER BY position) AS run
  FROM ({})
) GROUP BY filename, run
"""


class PickedRows(Struct, frozen=True):
    """Single rows of some owners, by the values of a column."""

    column: str
    values: pa.Array
    owners: frozenset[str]


class OwnerRows(Struct, frozen=True):
    """The rows whose column `by` has one of some values, and those of some repositories where it is null.

    Of other owners rows may be picked.
    """

    by: str
    owners: frozenset[str]
    shared_repos: frozenset[str] = frozenset()
    picked: PickedRows | None = None

    def predicate(self, table: Table) -> Predicate:
        """As a condition on a table, for what the log says of its files."""
        terms: list[Term] = []
        owners = self.owners | (self.picked.owners if self.picked else frozenset())
        if owners:
            terms.append(InList.of(table.column(self.by), owners))
        if self.shared_repos:
            of_them = InList.of(table.column(REPOSITORY), self.shared_repos)
            terms.append(And((IsNull(table.column(self.by)), of_them)))
        return Predicate(table.name, Or(tuple(terms)))

    def conditions(self, file: LoggedFile) -> Iterator[str]:
        """Whether a row of a file is one, in SQL: one of them holds, and of no row two."""
        by, repository = (_value(file, name) for name in (self.by, REPOSITORY))
        if self.owners:
            yield f"{by} IN {_listed(self.owners)}"
        if self.shared_repos:
            yield f"{by} IS NULL AND {repository} IN {_listed(self.shared_repos)}"
        if self.picked is not None:
            among = f'"{self.picked.column}" IN (SELECT value FROM {PICKED})'
            yield f"{by} IN {_listed(self.picked.owners)} AND {among}"


class RemovedRows(Struct, frozen=True):
    """What a data file loses."""

    file: LoggedFile
    # How many rows of the table.
    rows: int
    # How many the file has in all.
    file_rows: int
    # All that are not rows of the table afterwards; none: the whole file goes.
    positions: BitMap64 | None


def find_removed_rows(table: Table, location: str, files: Iterable[LoggedFile], owned: OwnerRows) -> list[RemovedRows]:
    """The files of a version that hold rows of the owners, and which rows these are."""
    theirs = owned.predicate(table)
    held = [file for file in files if theirs.may_match(file.column_range)]
    if not held:
        return []
    with translate_errors(), lookup_connection() as database:
        if owned.picked is not None:
            database.register(PICKED, pa.table({"value": owned.picked.values}))
        return list(_leaving(database, location, held, owned))


def _leaving(
    database: duckdb.DuckDBPyConnection, location: str, held: Sequence[LoggedFile], owned: OwnerRows
) -> Iterator[RemovedRows]:
    places = {f"{location}/{file.path}": file for file in held}
    rows = {place: file.rows for place, file in places.items() if file.rows is not None}
    rows |= _counted(database, places.keys() - rows.keys())
    each_row = "SELECT filename, count(*) FROM ({}) GROUP BY filename"
    theirs: Counter[str] = Counter()
    for place, count in _found(database, places, owned, each_row):
        theirs[place] += count
    # Of a file that goes as a whole, positions would be many and are not needed.
    partly = {place: places[place] for place in theirs if theirs[place] < rows[place] or places[place].vector}
    positions = {place: BitMap64() for place in partly}
    for place, first, last in _found(database, partly, owned, RUNS):
        positions[place].add_range(first, last + 1)
    for place in theirs:
        file = places[place]
        before = read_vector(location, file.vector)
        after = before | positions[place] if place in positions else None
        count = rows[place] if after is None else len(after)
        if count > len(before):
            yield RemovedRows(file, count - len(before), rows[place], after if count < rows[place] else None)


def _found(
    database: duckdb.DuckDBPyConnection, places: Mapping[str, LoggedFile], owned: OwnerRows, question: str
) -> Iterator[Any]:
    """The answers to a question about the owners' rows, of which it sees the file and the position."""
    groups: dict[str, list[str]] = {}
    for place, file in places.items():
        for condition in owned.conditions(file):
            groups.setdefault(condition, []).append(place)
    for condition, paths in groups.items():
        found = parquet_relation(paths, "filename", "file_row_number")
        rows = f"SELECT filename, file_row_number AS position FROM {found} WHERE {condition}"
        yield from database.execute(question.format(rows)).fetchall()


def _counted(database: duckdb.DuckDBPyConnection, paths: Collection[str]) -> dict[str, int]:
    """The rows of files of which the log has no count."""
    if not paths:
        return {}
    found = f"SELECT file_name, num_rows FROM parquet_file_metadata({sql_path_list(paths)})"
    return dict(database.execute(found).fetchall())


def _value(file: LoggedFile, column: str) -> str:
    return sql_literal(file.partition[column]) if column in file.partition else f'"{column}"'


def _listed(values: Collection[str]) -> str:
    return f"({', '.join(map(sql_literal, sorted(values)))})"
