"""Compute the range of values that a column of a data file may contain, from the statistics in the log.

    bstart = Column("bstart", "bigint", "First byte.")
    values = range_from_statistics(bstart, 100, 4200, nulls=0, rows=70)
    values.may_equal(7), values.may_equal(100), values.may_be_greater(4200)        # False, True, False

A range may be larger than the values of the file, never smaller. Bounds in the log are not exact because:

- Spark truncates strings to 32 characters; it appends the greatest character to the maximum, but other
  writers only truncate. So a maximum of 32 bytes or more is known only by its prefix.
- Spark truncates timestamps to milliseconds.
- NaN is greater than all numbers in Spark and in DuckDB, and most writers omit it from the bounds.
- A null count is conclusive only if it is zero or the row count. With a deletion vector, a writer may have
  counted before or after the deletion, so only zero is conclusive.
- A bound that is not of the column's type, or a timestamp without a zone, is ignored.
- If the contract declares a default for a column, a reader may see it in the place of null.

Tests: `tests/unit/delta/test_predicate.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.spec import Column

# The types of column values.
Value: TypeAlias = str | int | float | bool | datetime

# A maximum of at least this many bytes may be the prefix of a longer string.
TRUNCATED_BYTES = 32
MILLISECOND = timedelta(milliseconds=1)
# Null in the paths of partitions.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
# Stored types whose values equal those of a contract column of each type, without a cast.
STORED_TYPES = {
    "string": ("string",),
    "int": ("byte", "short", "integer", "long"),
    "bigint": ("byte", "short", "integer", "long"),
    "double": ("double",),
    "boolean": ("boolean",),
    "timestamp": ("timestamp",),
}


class ColumnRange(Struct, frozen=True):
    """The values that a column of a file may contain: between two bounds, or null."""

    # None: the bound is unknown.
    least: Any = None
    greatest: Any = None
    # `greatest` is a prefix: the real maximum may be longer.
    truncated: bool = False
    # Some rows may be non-null.
    values: bool = True
    # Some rows may be null.
    nulls: bool = True
    # NaN may occur, outside of the bounds.
    nan: bool = False

    @property
    def only_value(self) -> Any:
        """The value that all rows have; None if they may have others."""
        is_known = self.least == self.greatest and not (self.truncated or self.nulls or self.nan)
        return self.least if is_known else None

    def may_equal(self, value: Value) -> bool:
        """Return whether a row may have this value."""
        return self._reaches_down(value) and self._reaches_up(value)

    def may_include(self, ordered: Sequence[Any]) -> bool:
        """Return whether a row may have one of some values, which must be sorted."""
        # The smallest value not below the lower bound: if it is too great, so are all others.
        first = 0 if self.least is None else bisect_left(ordered, self.least)
        return self.values and first < len(ordered) and self._reaches_up(ordered[first])

    def may_be_less(self, value: Value, *, or_equal: bool = False) -> bool:
        """Return whether a row may have a smaller value."""
        if not self.values or self.least is None:
            return self.values
        return bool(self.least <= value if or_equal else self.least < value)

    def may_be_greater(self, value: Value, *, or_equal: bool = False) -> bool:
        """Return whether a row may have a greater value."""
        if not self.values or self.nan or self.greatest is None:
            return self.values
        if self.truncated and str(value).startswith(self.greatest):
            return True
        return bool(self.greatest >= value if or_equal else self.greatest > value)

    def may_start_with(self, prefix: str) -> bool:
        """Return whether a row may have a string with this prefix."""
        if not self.values or (self.least is not None and self.least[: len(prefix)] > prefix):
            return False
        return self._reaches_up(prefix)

    def is_constant(self, value: Value) -> bool:
        """Return whether all non-null rows have this value."""
        return not self.nan and not self.truncated and self.least == value and self.greatest == value

    def always_starts_with(self, prefix: str) -> bool:
        """Return whether all non-null rows have this prefix."""
        bounds = (self.least, self.greatest)
        return all(bound is not None and bound.startswith(prefix) for bound in bounds)

    def _reaches_down(self, value: Value) -> bool:
        return self.values and bool(self.least is None or self.least <= value)

    def _reaches_up(self, value: Value) -> bool:
        """Return whether the maximum may be this value or greater; NaN is ignored: no literal is NaN."""
        if not self.values or self.greatest is None:
            return self.values
        return bool(value <= self.greatest) or (self.truncated and str(value).startswith(self.greatest))


ANY_VALUE = ColumnRange()
ONLY_NULL = ColumnRange(values=False)


def range_from_statistics(
    column: Column, least: Any, greatest: Any, *, nulls: Any = None, rows: Any = None, shrunk: bool = False
) -> ColumnRange:
    """Return the range of a column of a file from Delta's statistics; `shrunk`: rows were deleted since."""
    low: Any = _bound(column, least)
    high: Any = _bound(column, greatest)
    if column.type == "timestamp":
        low, high = _shift(low, -MILLISECOND), _shift(high, MILLISECOND)
    if low is not None and high is not None and low > high:
        low = high = None
    may_be_null = type(nulls) is not int or nulls != 0
    has_bounds = least is not None or greatest is not None
    if not has_bounds and not shrunk and may_be_null and type(rows) is int and nulls == rows > 0:
        return ANY_VALUE if column.default is not None else ONLY_NULL
    if may_be_null and column.default is not None:
        return ANY_VALUE
    truncated = isinstance(high, str) and len(high.encode(errors="surrogatepass")) >= TRUNCATED_BYTES
    return ColumnRange(low, high, truncated, nulls=may_be_null, nan=column.type == "double")


def range_from_partition(column: Column, text: str | None) -> ColumnRange:
    """Return the range of a partition column of a file from its value in the log."""
    if text is None:
        return ANY_VALUE if column.default is not None else ONLY_NULL
    if text in ("", HIVE_NULL):
        # Some readers interpret it as null.
        return ANY_VALUE
    value = _parse_text(column, text)
    return ANY_VALUE if value is None else ColumnRange(value, value, nulls=False)


def _parse_text(column: Column, text: str) -> Value | None:
    if column.type == "string":
        return text
    if column.type in ("int", "bigint"):
        return int(text) if WHOLE.fullmatch(text) else None
    if column.type == "boolean":
        return {"true": True, "false": False}.get(text)
    return _time(text) if column.type == "timestamp" else None


def _bound(column: Column, value: Any) -> Value | None:
    """Convert a JSON value of the log to the column's type; None if it has another type."""
    if column.type == "string":
        return value if isinstance(value, str) else None
    if column.type in ("int", "bigint"):
        return value if type(value) is int else None
    if column.type == "double":
        return _number(value)
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return _time(value) if column.type == "timestamp" and isinstance(value, str) else None


def _number(value: Any) -> float | None:
    try:
        return float(value) if type(value) in (int, float) and math.isfinite(value) else None
    except OverflowError:
        return None


def _time(text: str) -> datetime | None:
    """Parse a timestamp; None if it is invalid or has no zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _shift(time: Any, by: timedelta) -> datetime | None:
    try:
        return None if time is None else time + by
    except OverflowError:
        return None
