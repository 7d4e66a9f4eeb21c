"""What an answer has read, as notes for the statistics of later builds: tables, files and columns, no values.

    reader = RecordingReader(LightReader(snapshot))
    answer(reader, "callers", ("Session.send",), limit=20)
    note(root, notes_of(reader.light, "callers", reader.asked))

`Lake.open(root, record_queries=True)` does it for every question. So does the command line with the setting
`observe.record_queries`, which is off by default. Columns are those that the slices of the questions name,
and those that the statements filter and join by (`query.sql.columns`).

Tests: `tests/unit/lake/test_recorded_queries.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from codeanatomy import catalog
from codeanatomy.lake.recorded_queries import RecordedQuery
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Relation, Row, Slice

if TYPE_CHECKING:
    from codeanatomy.query.sql.columns import Used

SQL = "sql"
# Slices of one answer: a walk reads as many as it has steps.
MAX_NOTES = 200
# Statements of verbs are few, and each is asked again and again.
STATEMENTS = 256


class RecordingReader:
    """A reader that keeps the queries it was asked."""

    def __init__(self, light: LightReader) -> None:
        self.light = light
        self.asked: list[Query] = []

    @property
    def snapshot(self) -> Snapshot:
        """The state of the lake that is read."""
        return self.light.snapshot

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """The rows of a query that is known to have few."""
        self.asked.append(query)
        return self.light.rows(query, limit)


def notes_of(light: LightReader, verb: str, asked: Sequence[Query]) -> list[RecordedQuery]:
    """The slices that the queries of a verb have read."""
    return list(islice(_notes(light, verb, asked), MAX_NOTES))


def notes_of_sql(light: LightReader, text: str) -> list[RecordedQuery]:
    """The slices that a statement has read through its views, and the columns that it names itself."""
    from codeanatomy.query.sql.check import check
    from codeanatomy.query.sql.columns import views_used
    from codeanatomy.query.sql.pruning import view_queries

    checked = check(text)
    used = views_used(checked.tree, checked.views)
    asked = view_queries(checked, light.snapshot).values()
    parts = (part for query in asked for _, part in _slices(light, query))
    return [_noted(light, SQL, part, used.get(part.table)) for part in islice(parts, MAX_NOTES)]


def _notes(light: LightReader, verb: str, asked: Sequence[Query]) -> Iterator[RecordedQuery]:
    for query in asked:
        used = _used(query.sql, tuple((name, _columns(each)) for name, each in query.relations.items()))
        for name, part in _slices(light, query):
            yield _noted(light, verb, part, used.get(name))


def _slices(light: LightReader, query: Query) -> Iterator[tuple[str, Slice]]:
    """The slices of tables that are there, by the name that the query has for them."""
    for name, part in query.relations.items():
        if isinstance(part, Slice) and light.snapshot.has(part.table):
            yield name, part


@lru_cache(STATEMENTS)
def _used(sql: str, relations: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, Used]:
    # Here, since it takes as long as a short answer.
    from codeanatomy.query.sql.columns import columns_used

    return columns_used(sql, dict(relations))


def _columns(relation: Relation) -> tuple[str, ...]:
    if isinstance(relation, Slice):
        return catalog.table(relation.table).column_names
    return tuple(column.name for column in relation.columns)


def _noted(light: LightReader, purpose: str, part: Slice, used: Used | None) -> RecordedQuery:
    predicate = part.predicate
    return RecordedQuery(
        datetime.now(UTC),
        purpose,
        part.table,
        light.snapshot.pin(part.table).version,
        len(light.files(Slice(part.table))),
        len(light.files(part)),
        predicate.shape,
        tuple(sorted({*predicate.columns, *(used.filters if used else ())})),
        tuple(sorted(used.joins)) if used else (),
        tuple(sorted(used.columns)) if used else (),
    )
