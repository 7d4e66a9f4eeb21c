"""Find the rows of some owners in a table: whole data files, and row positions in others.

    owned = OwnerRows("owner_file_id", frozenset({"file:rZEv..."}), repos=frozenset({"shop"}))
    version = open_version(nodes, "/lake/graph/cpg_nodes")
    find_removed_rows(nodes, "/lake/graph/cpg_nodes", version.files, owned)
    [RemovedRows(file, 12, 9000, positions=BitMap64([40, ..., 51]))]

Files are skipped if their statistics or partition exclude the owners (`delta.read.predicate`); from the
others DuckDB reads the owner column, where row groups may contain a match.

Tests: `tests/unit/delta/test_deletion_vectors.py`, `tests/spark/test_deletion_vectors.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
from msgspec import Struct
from pyroaring import BitMap64

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.folder import folder_of
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
# First and last position of contiguous rows: the rows of an owner mostly are.
RUNS = """
SELECT filename, min(position), max(position) FROM (
  SELECT filename, position,
    position - row_number() OVER (PARTITION BY filename ORDER BY position) AS run
  FROM ({})
) GROUP BY filename, run
"""


class OwnerRows(Struct, frozen=True):
    """A selection of rows: those of `owners`, and those without an owner of `shared_repos`."""

    # The owner column.
    by: str
    owners: frozenset[str]
    # The repositories of the owners, if they are known: rows of others are not read.
    repos: frozenset[str] = frozenset()
    shared_repos: frozenset[str] = frozenset()

    def predicate(self, table: Table) -> Predicate:
        """Return a predicate for pruning data files."""
        terms: list[Term] = []
        if self.owners:
            of_owners = InList.of(table.column(self.by), self.owners)
            of_repos = [InList.of(table.column(REPOSITORY), self.repos)] if self.repos else []
            terms.append(And((*of_repos, of_owners)))
        if self.shared_repos:
            in_repos = InList.of(table.column(REPOSITORY), self.shared_repos)
            terms.append(And((IsNull(table.column(self.by)), in_repos)))
        return Predicate(table.name, Or(tuple(terms)))

    def conditions(self, file: LoggedFile) -> Iterator[str]:
        """Yield disjoint SQL conditions; a row of a file is selected if one of them holds."""
        by, repository = (_value(file, name) for name in (self.by, REPOSITORY))
        of_repos = f"{repository} IN {_listed(self.repos)} AND " if self.repos else ""
        if self.owners:
            yield f"{of_repos}{by} IN {_listed(self.owners)}"
        if self.shared_repos:
            yield f"{by} IS NULL AND {repository} IN {_listed(self.shared_repos)}"


class RemovedRows(Struct, frozen=True):
    """The rows to be removed from a data file."""

    file: LoggedFile
    # Number of rows to remove.
    rows: int
    # Number of rows in the file, including deleted ones.
    file_rows: int
    # Positions of all deleted rows afterwards; None: the whole file is removed.
    positions: BitMap64 | None


def find_removed_rows(
    table: Table, location: str, files: Iterable[LoggedFile], owned: OwnerRows
) -> list[RemovedRows]:
    """Find the data files with rows of the owners, and the positions of these rows."""
    predicate = owned.predicate(table)
    candidates = [file for file in files if predicate.may_match(file.column_range)]
    if not candidates:
        return []
    with translate_errors(), lookup_connection() as database:
        return list(_removed_rows(database, location, candidates, owned))


def _removed_rows(
    database: duckdb.DuckDBPyConnection, location: str, candidates: Sequence[LoggedFile], owned: OwnerRows
) -> Iterator[RemovedRows]:
    folder = folder_of(location)
    files = {folder.local_path(file.path, least=file.size_bytes): file for file in candidates}
    rows = {path: file.rows for path, file in files.items() if file.rows is not None}
    rows |= _count_rows(database, files.keys() - rows.keys())
    counts = "SELECT filename, count(*) FROM ({}) GROUP BY filename"
    selected: Counter[str] = Counter()
    for path, count in _query_rows(database, files, owned, counts):
        selected[path] += count
    # Positions are not needed for files that are removed as a whole, and would be many.
    partial = {path: files[path] for path in selected if selected[path] < rows[path] or files[path].vector}
    positions = {path: BitMap64() for path in partial}
    for path, first, last in _query_rows(database, partial, owned, RUNS):
        positions[path].add_range(first, last + 1)
    for path in selected:
        file = files[path]
        before = read_vector(location, file.vector)
        after = before | positions[path] if path in positions else None
        count = rows[path] if after is None else len(after)
        if count > len(before):
            yield RemovedRows(file, count - len(before), rows[path], after if count < rows[path] else None)


def _query_rows(
    database: duckdb.DuckDBPyConnection, files: Mapping[str, LoggedFile], owned: OwnerRows, query: str
) -> Iterator[Any]:
    """Run a query over the selected rows, given as `filename` and `position`."""
    groups: dict[str, list[str]] = {}
    for path, file in files.items():
        for condition in owned.conditions(file):
            groups.setdefault(condition, []).append(path)
    for condition, paths in groups.items():
        relation = parquet_relation(paths, "filename", "file_row_number")
        rows = f"SELECT filename, file_row_number AS position FROM {relation} WHERE {condition}"
        yield from database.execute(query.format(rows)).fetchall()


def _count_rows(database: duckdb.DuckDBPyConnection, paths: Collection[str]) -> dict[str, int]:
    """Read the row counts of files from their footers, for files without a count in the log."""
    if not paths:
        return {}
    query = f"SELECT file_name, num_rows FROM parquet_file_metadata({sql_path_list(paths)})"
    return dict(database.execute(query).fetchall())


def _value(file: LoggedFile, column: str) -> str:
    return sql_literal(file.partition[column]) if column in file.partition else f'"{column}"'


def _listed(values: Collection[str]) -> str:
    return f"({', '.join(map(sql_literal, sorted(values)))})"
