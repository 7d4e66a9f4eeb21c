"""Describe a question, and which tables, files and columns it has read, without any value of it.

    reader = RecordingReader(LightReader(snapshot))
    timer = QuestionTimer("callers")
    result = answer(reader, "callers", ("Session.send",), limit=20)
    verb_notes(reader.light, timer, reader.queries, len(result.rows))

The first note is the question itself: its verb, the run that was read, seconds, files, bytes and rows. The
others are its reads of tables; later builds choose their column statistics by them. This module only makes
notes: `Lake` passes them to its `record` function, and the command line writes them with
`lake.recorded_queries` if the setting `observe.record_queries` is on (it is off by default). Columns are
those that the slices of the queries name, and those that the statements filter and join by
(`query.sql.columns`).

Tests: `tests/unit/query/test_recording.py`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from codeanatomy import catalog
from codeanatomy.lake.recorded_queries import Record, RecordedQuery, RecordedQuestion
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.derived_columns import stored_columns
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Relation, Row, Slice

if TYPE_CHECKING:
    from codeanatomy.query.sql.columns import Used

SQL = "sql"
# Notes of one answer: a walk reads as many slices as it has levels.
MAX_NOTES = 200
# Cached analyses of statements: verbs have few, and each runs again and again.
CACHED_STATEMENTS = 256


class RecordingReader:
    """A reader that remembers the queries it has run."""

    def __init__(self, light: LightReader) -> None:
        self.light = light
        self.queries: list[Query] = []

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is read."""
        return self.light.snapshot

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """Run a query and return its rows; it is expected to have few."""
        self.queries.append(query)
        return self.light.rows(query, limit)


class QuestionTimer:
    """A question that is being answered."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self._at, self._began = datetime.now(UTC), time.perf_counter()
        self._seconds: float | None = None

    def stop(self) -> None:
        """End the time that it took."""
        self._seconds = time.perf_counter() - self._began

    def note(self, run_id: str, rows: int, sizes: Collection[int] | None = None) -> RecordedQuestion:
        """Describe it, with the sizes of the data files that were opened, if they are known."""
        seconds = time.perf_counter() - self._began if self._seconds is None else self._seconds
        files, size = (None, None) if sizes is None else (len(sizes), sum(sizes))
        return RecordedQuestion(self._at, self.verb, run_id, round(seconds, 6), files, size, rows)


def verb_notes(light: LightReader, timer: QuestionTimer, queries: Sequence[Query], rows: int) -> list[Record]:
    """Describe a question by a verb, and the slices that its queries have read."""
    timer.stop()
    slices = (part for query in queries for _, part in _existing_slices(light, query))
    notes = islice(_query_notes(light, timer.verb, queries), MAX_NOTES)
    return [timer.note(light.snapshot.run_id, rows, _file_sizes(light, slices)), *notes]


def sql_notes(light: LightReader, timer: QuestionTimer, text: str, rows: int) -> list[Record]:
    """Describe a user's statement: the slices it has read through views, and the columns it names."""
    timer.stop()
    from codeanatomy.query.sql.check import check
    from codeanatomy.query.sql.columns import views_used
    from codeanatomy.query.sql.pruning import view_queries

    checked = check(text)
    used = views_used(checked.tree, checked.views)
    queries = view_queries(checked, light.snapshot).values()
    slices = [part for query in queries for _, part in _existing_slices(light, query)]
    notes = (_note(light, SQL, part, used.get(part.table)) for part in slices[:MAX_NOTES])
    return [timer.note(light.snapshot.run_id, rows, _file_sizes(light, slices)), *notes]


def _file_sizes(light: LightReader, slices: Iterable[Slice]) -> Collection[int]:
    """Return the sizes of the data files of slices; a file that several of them share is there once."""
    return {
        (part.table, file.path): file.size_bytes for part in slices for file in light.files(part)
    }.values()


def _query_notes(light: LightReader, verb: str, queries: Sequence[Query]) -> Iterator[RecordedQuery]:
    for query in queries:
        columns = tuple((name, _column_names(relation)) for name, relation in query.relations.items())
        used = _columns_used(query.sql, columns)
        for name, part in _existing_slices(light, query):
            yield _note(light, verb, part, used.get(name))


def _existing_slices(light: LightReader, query: Query) -> Iterator[tuple[str, Slice]]:
    """Yield the slices of a query whose tables exist, each with its name in the statement."""
    for name, part in query.relations.items():
        if isinstance(part, Slice) and light.snapshot.has(part.table):
            yield name, part


@lru_cache(CACHED_STATEMENTS)
def _columns_used(sql: str, relations: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, Used]:
    # Imported here because it takes as long as a short answer.
    from codeanatomy.query.sql.columns import columns_used

    return columns_used(sql, dict(relations))


def _column_names(relation: Relation) -> tuple[str, ...]:
    if isinstance(relation, Slice):
        return tuple(column.name for column in catalog.table(relation.table).readable_columns)
    return tuple(column.name for column in relation.columns)


def _note(light: LightReader, purpose: str, part: Slice, used: Used | None) -> RecordedQuery:
    """Describe a slice; derived columns count as the stored ones that they are made of."""
    predicate, table = part.predicate, catalog.table(part.table)
    return RecordedQuery(
        datetime.now(UTC),
        purpose,
        part.table,
        light.snapshot.pin(part.table).version,
        len(light.files(Slice(part.table))),
        len(light.files(part)),
        predicate.shape,
        tuple(sorted({*predicate.columns, *stored_columns(table, used.filters if used else ())})),
        tuple(sorted(stored_columns(table, used.joins if used else ()))),
        tuple(sorted(stored_columns(table, used.columns if used else ()))),
    )
