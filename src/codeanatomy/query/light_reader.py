"""The light lane: queries over the published tables by deltalake and DuckDB. No JVM, no PyArrow.

    reader = LightReader(Snapshot.open("lake"))
    reader.rows(Query("SELECT count(*) FROM n", {"n": Slice("cpg_nodes", node_kind=("CLASS",))}))

The log of a table says which of its files may hold the rows of a slice, by partition and by the least and
greatest values; DuckDB skips what it can inside of them. Tests: `tests/test_queries.py`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import duckdb

from codeanatomy import catalog
from codeanatomy.query.reading import Held, Query, Relation, Row, Slice, select_held
from codeanatomy.query.snapshot import Snapshot
from codeanatomy.storage.duck import duck_type, local, lookups, reading, rows_of, sql_text
from codeanatomy.storage.light import LoggedFile


class LightReader:
    """Reads one snapshot; what the log says of a table is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._root = local(snapshot.root)
        self._files: dict[str, tuple[LoggedFile, ...]] = {}

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """The rows of a query; with a limit, each ends with how many there are."""
        with reading():
            return self.connection.execute(query.text(self.relation, limit), list(query.args)).fetchall()

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection of this reader's own."""
        return lookups()

    def relation(self, relation: Relation) -> str:
        """A slice, or rows at hand, as a statement of DuckDB's."""
        if isinstance(relation, Held):
            return select_held(relation, literal, duck_type)
        rows = rows_of(self._root, relation.table, self.files(relation))
        conditions = [
            f"{catalog.table(relation.table).column(name).name} IN ({', '.join(map(sql_text, values))})"
            if values
            else "FALSE"
            for name, values in relation.wanted.items()
        ]
        return f"{rows} WHERE {' AND '.join(conditions)}" if conditions else rows

    def files(self, part: Slice) -> list[LoggedFile]:
        """The data files that may hold rows of a slice."""
        if part.table not in self._files:
            self._files[part.table] = self.snapshot.files(part.table)
        return [
            file
            for file in self._files[part.table]
            if all(file.may_hold(name, values) for name, values in part.wanted.items())
        ]


def literal(value: Any) -> str:
    """A value as DuckDB spells it.

    >>> literal("it's"), literal(None), literal(True), literal(0.5)
    ("'it''s'", 'NULL', 'TRUE', '0.5')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return repr(value) if isinstance(value, int | float) else sql_text(value)
