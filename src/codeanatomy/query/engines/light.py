"""The light lane: queries over the published tables by deltalake and DuckDB. No JVM, no PyArrow.

    reader = LightReader(Snapshot.open("lake"))
    reader.rows(Query("SELECT count(*) FROM n", {"n": Slice("cpg_nodes", node_kind=("CLASS",))}))

The log of a table says which of its files may hold the rows of a slice, by partition and by the least and
greatest values (`delta.read.file_index`); DuckDB skips what it can inside of them. What was read is told in
`scans`. Tests: `tests/unit/lake/test_queries.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections import deque

from msgspec import json

from codeanatomy import catalog
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.read.duck import (
    duck_type,
    local_path,
    lookup_connection,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile
from codeanatomy.delta.read.predicate import DUCKDB, Predicate
from codeanatomy.errors import CodeAnatomyError, StorageFailure
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.statements import Held, Query, Relation, Row, Slice

# A reader may live for long: so many of its last scans are known.
KEPT_SCANS = 1000


class LightReader:
    """Reads one snapshot; what the log says of a table is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        # One for each slice that was read.
        self.scans: deque[Scanned] = deque(maxlen=KEPT_SCANS)
        self._root = local_path(snapshot.root)
        self._indexes: dict[str, FileIndex] = {}

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """The rows of a query; with a limit, each ends with how many there are."""
        held = query.at_hand(limit)
        if held is not None:
            return held
        # A connection for each: what it has answered last is all that it knows, and threads may ask.
        try:
            with translate_errors(), lookup_connection() as found:
                return found.execute(query.text(self.relation, limit), list(query.args)).fetchall()
        except StorageFailure as problem:
            raise self._explained(query, problem) from problem

    def _explained(self, query: Query, problem: CodeAnatomyError) -> CodeAnatomyError:
        """What is wrong with one of the tables of a query, if something is."""
        for each in query.relations.values():
            if isinstance(each, Slice):
                found = self.snapshot.explain(each.table, problem)
                if found is not problem:
                    return found
        return problem

    def relation(self, relation: Relation) -> str:
        """A slice, or rows at hand, as a statement of DuckDB's."""
        if isinstance(relation, Held):
            return held_rows(relation)
        predicate = relation.predicate
        files = self._index(relation.table).candidates(predicate)
        self._tell(predicate, len(files))
        rows = select_rows(self._root, relation.table, files)
        return f"{rows} WHERE {predicate.sql(DUCKDB)}" if predicate.columns else rows

    def files(self, part: Slice) -> list[LoggedFile]:
        """The data files that may hold rows of a slice."""
        return self._index(part.table).candidates(part.predicate)

    def _index(self, name: str) -> FileIndex:
        if name not in self._indexes:
            files = self.snapshot.files(name)
            version = self.snapshot.pin(name).version if self.snapshot.has(name) else -1
            self._indexes[name] = FileIndex(version, files)
        return self._indexes[name]

    def _tell(self, predicate: Predicate, candidates: int) -> None:
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


def held_rows(held: Held) -> str:
    """Rows at hand as a statement: from JSON, which DuckDB reads twenty times as fast as a list of VALUES."""
    names = [column.name for column in held.columns]
    rows = json.encode([dict(zip(names, row, strict=True)) for row in held.rows]).decode()
    shape = json.encode([{column.name: duck_type(column) for column in held.columns}]).decode()
    return f"SELECT unnest(from_json({sql_literal(rows)}, {sql_literal(shape)}), max_depth := 2)"
