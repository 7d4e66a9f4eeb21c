"""Build the answer to a statement of either engine: like `query.answers.Answer`, with any columns.

    answer = Lake.open("lake").sql("SELECT kind, count(*) FROM symbols GROUP BY kind")
    answer.rows[0]        # {"kind": "CLASS", "count": 52}
    answer.total          # 6; None if there was no time to count them
    answer.to_pandas()    # types as the values have them

A statement may read any repository, so the freshness and coverage are those of all in the lake.
Tests: `tests/unit/query/test_sql.py`, `tests/unit/query/test_sql_command.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import MAX_LIMIT, Coverage, Freshness, check_limit
from codeanatomy.query.ask import coverage_of, freshness_of
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.sql.check import Checked

# Bounds of the time limit, in seconds.
SHORTEST = 0.1
LONGEST = 3600.0


class SqlAnswer(Struct, frozen=True):
    """Rows of a statement, how many there are, how fresh they are, and what is not covered."""

    verb: str
    # The statement, as it was typed.
    subject: tuple[str, ...]
    # Keys of each row.
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    # None if counting them would have taken too long.
    total: int | None
    # Rows that were left out; None if they were not counted.
    cut: int | None
    # How to get them; None if there are no others.
    more: str | None
    # Limits of this answer, in words.
    notes: tuple[str, ...]
    run_id: str
    freshness: tuple[Freshness, ...]
    coverage: tuple[Coverage, ...]
    # Views that the statement reads.
    views: tuple[str, ...]
    # The statement as the engine has run it.
    sql: str

    @classmethod
    def of(
        cls,
        checked: Checked,
        rows: Sequence[Iterable[Any]],
        *,
        limit: int,
        total: int | None,
        sql: str,
        reader: Reader,
    ) -> SqlAnswer:
        """Make the answer from at most `limit` rows; one row more means that there are others."""
        shown = tuple(dict(zip(checked.columns, map(plain, row), strict=True)) for row in rows[:limit])
        is_cut = len(rows) > limit
        repositories = list(reader.snapshot.repositories.values())
        return cls(
            "sql",
            (checked.text,),
            checked.columns,
            shown,
            total,
            None if total is None else total - len(shown),
            f"--limit {total or min(limit * 10, MAX_LIMIT)}" if is_cut else None,
            ("there are more rows, which were not counted",) if total is None else (),
            reader.snapshot.run_id,
            freshness_of(reader, repositories),
            coverage_of(reader, repositories),
            checked.views,
            sql,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> Any:
        """The rows as a PyArrow table, with types by their values; a column without any has the type null."""
        import pyarrow as pa

        return pa.table({name: pa.array([row[name] for row in self.rows]) for name in self.columns})

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NaN and infinity are null, and times are UTC.

    >>> plain([Decimal("0.5"), float("nan"), "a"])
    [0.5, None, 'a']
    """
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        # A time without a zone comes from Spark, in the zone of this process.
        return value.astimezone(UTC)
    return None if isinstance(value, float) and not isfinite(value) else value


def check_limits(limit: int, seconds: float) -> None:
    """Raise UsageError if the limit or the time limit is out of bounds."""
    check_limit(limit)
    if type(seconds) not in (int, float) or not SHORTEST <= seconds <= LONGEST:
        raise UsageError(
            f"--seconds must be {SHORTEST:g}-{LONGEST:g}, got {seconds!r}", "use a time limit in this range"
        )
