"""Read the published tables with DuckDB: no JVM, no PyArrow.

    reader = LightReader(Snapshot.open("lake"))
    reader.rows(Query("SELECT count(*) FROM n", {"n": Slice("cpg_nodes", node_kind=("CLASS",))}))

The log of a table selects the files that may hold the rows of a slice, by partition and by minimum and
maximum values (`delta.read.file_index`); DuckDB skips row groups inside of them. `scans` records what was
read.

Tests: `tests/unit/query/test_statements.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections import deque

from msgspec import json

from codeanatomy import catalog
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.read.duck import (
    duck_type,
    lookup_connection,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile
from codeanatomy.delta.read.predicate import DUCKDB, Predicate
from codeanatomy.errors import CodeAnatomyError, StorageFailure
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.derived_columns import with_derived
from codeanatomy.query.engines.statements import InlineRows, Query, Relation, Row, Slice

# Number of last scans that are kept, since a reader may live long.
KEPT_SCANS = 1000


class LightReader:
    """Reads one snapshot; the log of a table is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        # One for each slice that was read.
        self.scans: deque[Scanned] = deque(maxlen=KEPT_SCANS)
        self._root = snapshot.root
        self._indexes: dict[str, FileIndex] = {}

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """Return the rows of a query; with a limit, each row ends with the number of rows without it."""
        inline = query.inline_rows(limit)
        if inline is not None:
            return inline
        # A connection for each query, because threads may share the reader.
        try:
            with translate_errors(), lookup_connection() as connection:
                return connection.execute(query.text(self.relation, limit), list(query.args)).fetchall()
        except StorageFailure as problem:
            raise self._explained(query, problem) from problem

    def _explained(self, query: Query, problem: CodeAnatomyError) -> CodeAnatomyError:
        """Return the error of the first table of a query that cannot be read, else the problem itself."""
        for each in query.relations.values():
            if isinstance(each, Slice):
                cause = self.snapshot.explain(each.table, problem)
                if cause is not problem:
                    return cause
        return problem

    def relation(self, relation: Relation) -> str:
        """Return a slice, or rows in memory, as a statement of DuckDB."""
        if isinstance(relation, InlineRows):
            return values_sql(relation)
        predicate = relation.predicate
        files = self._index(relation.table).candidates(predicate)
        self._record_scan(predicate, len(files))
        rows = select_rows(self._root, relation.table, files)
        return with_derived(
            relation.table, f"{rows} WHERE {predicate.sql(DUCKDB)}" if predicate.columns else rows
        )

    def files(self, part: Slice) -> list[LoggedFile]:
        """Return the data files that may hold rows of a slice."""
        return self._index(part.table).candidates(part.predicate)

    def _index(self, name: str) -> FileIndex:
        if name not in self._indexes:
            files = self.snapshot.files(name)
            version = self.snapshot.pin(name).version if self.snapshot.has(name) else -1
            self._indexes[name] = FileIndex(version, files)
        return self._indexes[name]

    def _record_scan(self, predicate: Predicate, candidates: int) -> None:
        index = self._index(predicate.table)
        self.scans.append(
            Scanned(
                table=predicate.table,
                version=index.version,
                projection=(),
                total_files=index.total,
                candidate_files=candidates,
                pushed_filters=predicate.shape,
                filter_columns=predicate.columns,
                projected_columns=catalog.table(predicate.table).column_names,
            )
        )


def values_sql(inline: InlineRows) -> str:
    """Return rows in memory as a statement, in JSON: DuckDB reads it twenty times as fast as VALUES."""
    names = [column.name for column in inline.columns]
    rows = json.encode([dict(zip(names, row, strict=True)) for row in inline.rows]).decode()
    shape = json.encode([{column.name: duck_type(column) for column in inline.columns}]).decode()
    return f"SELECT unnest(from_json({sql_literal(rows)}, {sql_literal(shape)}), max_depth := 2)"
