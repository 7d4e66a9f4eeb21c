"""Define what a verb returns: a query that is not run yet, its columns, and notes for the user.

    VerbResult(Query(..., columns=("symbol", "path")), notes=("variables of functions are not listed",))

Tests: `tests/unit/query/test_verb_calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.engines.statements import ALL_INLINE, INLINE, ROW_NO, InlineRows, Query, Relation


class VerbResult(Struct, frozen=True):
    """The unevaluated result of a verb."""

    query: Query
    # Limitations that the user should know, in English.
    notes: tuple[str, ...] = ()
    # Whether rows may be missing, because calls or names could not be resolved; a note has the reason.
    unknown: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names of the rows; each is declared in `answers.COLUMNS`."""
        return self.query.columns


def query_result(
    columns: tuple[str, ...],
    sql: str,
    relations: Mapping[str, Relation],
    args: tuple[Any, ...] = (),
    order: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    *,
    unknown: bool = False,
) -> VerbResult:
    """Make a result of a SQL statement."""
    return VerbResult(Query(sql, relations, args, order, columns), notes, unknown)


def rows_result(
    columns: tuple[str, ...],
    rows: Iterable[Mapping[str, Any]],
    notes: tuple[str, ...] = (),
    *,
    unknown: bool = False,
) -> VerbResult:
    """Make a result of rows computed in Python, in their order; a missing key is null."""
    numbered = [(number, *map(row.get, columns)) for number, row in enumerate(rows)]
    relation = InlineRows((ROW_NO, *(COLUMNS[name] for name in columns)), numbered)
    return query_result(
        columns, ALL_INLINE, {INLINE: relation}, order=(ROW_NO.name,), notes=notes, unknown=unknown
    )
