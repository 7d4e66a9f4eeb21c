"""Describe a query as data: one SQL statement over slices of tables, the same for DuckDB and Spark.

    Query(
        "SELECT n.qualname AS symbol, e.path, e.line FROM e JOIN n ON n.node_id = e.src_node_id",
        {
            "e": Slice("cpg_edges_by_dst", dst_node_id=ids, edge_kind=("CALL_GRAPH",)),
            "n": nodes(("FUNCTION", "MODULE"), "shop"),
        },
        order=("path", "line"),
    )

A slice is the rows of a published table whose columns have certain values, or values between two bounds:

    nodes(ENCLOSING_KINDS, "shop", path=("shop/cart.py",), bstart=Within(greatest=400), bend=Within(400))

A reader opens only the files that may hold such rows. No edge leads from one repository to another, so what a
verb reads about a symbol is limited to its repository (`RepositoryReader`). `InlineRows` is a relation of
rows in memory. The statement is in the SQL that both engines understand. What a user typed is never part of
it: a name is an argument for a `?`, and an id, a path or a repository is a value of a slice, which each
engine writes as a literal.

A verb reads small results through its reader (`rows`) and returns a query, which is not run yet: the light
reader fetches its first rows and counts the rest, the Spark reader makes a DataFrame of it.

Tests: `tests/unit/query/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, structs

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.predicate import And, Compare, InList, IsNull, Or, Predicate, Term
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.derived_columns import derived_column, derived_term

Row: TypeAlias = tuple[Any, ...]


# Name and statement of a query that only returns rows in memory, and the column it is ordered by.
INLINE = "h"
ALL_INLINE = f"SELECT * FROM {INLINE}"
ROW_NO = Column("row_no", "bigint", "Its place in the answer, from 0.", nullable=False)


class Within(Struct, frozen=True):
    """A closed range of positions (bytes or lines); None is no bound."""

    least: int | None = None
    greatest: int | None = None
    # Whether rows without a position match, too.
    or_null: bool = False

    def term(self, column: Column) -> Term:
        """Return the range as a condition on a column."""
        bounds: list[Term] = []
        if self.least is not None:
            bounds.append(Compare(column, ">=", self.least))
        if self.greatest is not None:
            bounds.append(Compare(column, "<=", self.greatest))
        return Or((IsNull(column), And(tuple(bounds)))) if self.or_null else And(tuple(bounds))


Wanted: TypeAlias = Collection[str] | Within


class Slice:
    """Rows of a table whose columns have one of some values; `Slice("cpg_nodes")` is all of them."""

    def __init__(self, table: str, **wanted: Wanted) -> None:
        self.table = table
        # By column. An empty collection means no row.
        self.wanted: dict[str, tuple[str, ...]] = {}
        self.within: dict[str, Within] = {}
        # Further conditions.
        self.terms: tuple[Term, ...] = ()
        for name, values in wanted.items():
            if isinstance(values, Within):
                self.within[name] = values
            else:
                self.wanted[name] = tuple(values)

    @property
    def predicate(self) -> Predicate:
        """The slice as a condition on its table."""
        table = catalog.table(self.table)
        return Predicate.all_of(table, *map(self.among, self.wanted), *self.ranges)

    def among(self, name: str) -> Term:
        """Return the condition that a column, which may be derived, has one of its wanted values."""
        table, values = catalog.table(self.table), self.wanted[name]
        if derived_column(table, name) is not None:
            return derived_term(table, name, values)
        return InList.of(table.column(name), values)

    @property
    def ranges(self) -> list[Term]:
        """Conditions on positions and other columns."""
        table = catalog.table(self.table)
        return [*(within.term(table.column(name)) for name, within in self.within.items()), *self.terms]

    def meeting(self, *terms: Term) -> Slice:
        """Return the slice with further conditions."""
        made = Slice(self.table, **self.wanted, **self.within)
        made.terms = (*self.terms, *terms)
        return made

    def of_repositories(self, repo_ids: Collection[str]) -> Slice:
        """Return the rows of some repositories, if the slice does not name its own."""
        if "repo_id" in self.wanted or "repo_id" not in catalog.table(self.table).column_names:
            return self
        made = Slice(self.table, **self.wanted, **self.within, repo_id=sorted(repo_ids))
        made.terms = self.terms
        return made


def of_repository(table: str, repo_id: str | None, **wanted: Wanted) -> Slice:
    """Return a slice of a table, for one repository or all."""
    of_one = {"repo_id": (repo_id,)} if repo_id is not None else {}
    return Slice(table, **of_one, **wanted)


def nodes(kinds: Collection[str], repo_id: str | None = None, **wanted: Wanted) -> Slice:
    """Return a slice of the nodes of some kinds, for one repository or all."""
    return of_repository("cpg_nodes", repo_id, node_kind=kinds, **wanted)


def edges(kinds: Collection[str], repo_id: str | None = None, **wanted: Wanted) -> Slice:
    """Return a slice of the edges of some kinds, for one repository or all."""
    return of_repository("cpg_edges", repo_id, edge_kind=kinds, **wanted)


class InlineRows(Struct, frozen=True):
    """Rows in memory, as a relation with these columns."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]


Relation: TypeAlias = Slice | InlineRows


class Query(Struct, frozen=True):
    """A statement, what the names in it stand for, and the order of its rows."""

    sql: str
    relations: Mapping[str, Relation] = {}
    # For each `?`.
    args: tuple[Any, ...] = ()
    # Columns to sort by, with DESC for descending.
    order: tuple[str, ...] = ()
    # Columns to return; empty means all.
    columns: tuple[str, ...] = ()

    def text(self, relation: Callable[[Relation], str], limit: int | None = None) -> str:
        """Return the whole statement; with a limit, a column `total` has the number of rows without it."""
        named = ", ".join(f"{name} AS ({relation(each)})" for name, each in self.relations.items())
        with_names = f"WITH {named} " if named else ""
        order = f" ORDER BY {', '.join(self.order)}" if self.order else ""
        columns = ", ".join(self.columns) or "*"
        if limit is None:
            return f"{with_names}SELECT {columns} FROM ({self.sql}) AS found{order}"
        total = "count(*) OVER () AS total"
        return f"{with_names}SELECT {columns}, {total} FROM ({self.sql}) AS found{order} LIMIT {limit:d}"

    def inline_rows(self, limit: int | None = None) -> list[Row] | None:
        """Return the rows if the query only returns rows in memory in their order, else None."""
        inline = self.relations.get(INLINE)
        if self.sql != ALL_INLINE or self.order != (ROW_NO.name,) or not isinstance(inline, InlineRows):
            return None
        names = [column.name for column in inline.columns]
        places = [names.index(name) for name in self.columns]
        rows = [tuple(row[place] for place in places) for row in inline.rows[:limit]]
        return rows if limit is None else [(*row, len(inline.rows)) for row in rows]


class Reader(Protocol):
    """Runs queries over the published tables of one snapshot."""

    @property
    def snapshot(self) -> Snapshot:
        """The state of the lake that is read."""
        ...

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """Return the rows of a query that is known to have few."""
        ...


class RepositoryReader:
    """A reader of some repositories of a lake; it opens only files that may hold their rows."""

    def __init__(self, reader: Reader, repo_ids: Collection[str]) -> None:
        self._reader = reader
        # Empty: all of the lake.
        self._repo_ids = () if reader.snapshot.repositories.keys() <= set(repo_ids) else tuple(repo_ids)

    @property
    def snapshot(self) -> Snapshot:
        """The state of the lake that is read."""
        return self._reader.snapshot

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """Return the rows of a query that is known to have few."""
        return self._reader.rows(self.query(query), limit)

    def query(self, query: Query) -> Query:
        """Return the query over the rows of these repositories."""
        if not self._repo_ids:
            return query
        relations = {
            name: each.of_repositories(self._repo_ids) if isinstance(each, Slice) else each
            for name, each in query.relations.items()
        }
        return structs.replace(query, relations=relations)
