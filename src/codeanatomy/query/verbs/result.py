"""What a verb returns: the query that answers, the columns it has, and what to know about the answer.

    Found(Query(..., columns=("symbol", "path", "line")), notes=("variables of functions are not listed",))

Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.engines.statements import ALL_HELD, HELD, ROW_NO, Held, Query, Relation


class Found(Struct, frozen=True):
    """An answer that is not read yet."""

    query: Query
    # What a reader of the answer should know, in words.
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """What its rows have; each is one of `answers.COLUMNS`."""
        return self.query.columns


def found(
    columns: tuple[str, ...],
    sql: str,
    relations: Mapping[str, Relation],
    args: tuple[Any, ...] = (),
    order: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Found:
    """The answer that a statement gives."""
    return Found(Query(sql, relations, args, order, columns), notes)


def held(columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]], notes: tuple[str, ...] = ()) -> Found:
    """Rows that a verb has worked out itself, in their order; what a row lacks is null."""
    numbered = [(number, *map(row.get, columns)) for number, row in enumerate(rows)]
    shape = Held((ROW_NO, *(COLUMNS[name] for name in columns)), numbered)
    return found(columns, ALL_HELD, {HELD: shape}, order=(ROW_NO.name,), notes=notes)
