"""What a column of a data file may hold, as far as the log of its table tells.

    bstart = Column("bstart", "bigint", "First byte.")
    held = of_statistics(bstart, 100, 4200, nulls=0, rows=70)
    held.may_equal(7), held.may_equal(100), held.may_be_greater(4200)        # False, True, False

A column_range may be larger than what the file holds, never smaller. Why bounds are not taken at their word:

- Spark cuts texts after 32 characters; it puts a character after the greatest that is above all others,
  but other writers just cut. So the greatest text is known to its beginning only, from 32 bytes on.
- Spark cuts times to milliseconds.
- NaN is above all numbers, for Spark and for DuckDB, and most writers leave it out of the bounds.
- How many values are null tells something only where none is or all are. Where a deletion vector has removed
  rows, a writer may have counted those before or after, so there it is only known where none is.
- A value that is not of the column's type, or a time without a zone, says nothing.
- Where the contract gives a column a default, a reader may see it in the place of a null.

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

# All values of a column are of one of these.
Value: TypeAlias = str | int | float | bool | datetime

# Texts of so many bytes may be the beginning of a longer one.
CUT_BYTES = 32
MILLISECOND = timedelta(milliseconds=1)
# What stands for null in the paths of partitions.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
# Types of a stored schema whose values are those of a column of the contract.
STORED_TYPES = {
    "string": ("string",),
    "int": ("byte", "short", "integer", "long"),
    "bigint": ("byte", "short", "integer", "long"),
    "double": ("double",),
    "boolean": ("boolean",),
    "timestamp": ("timestamp",),
}


class ColumnRange(Struct, frozen=True):
    """The values that may be in a column of a file: some between two bounds, or null."""

    # None: no bound is known.
    least: Any = None
    greatest: Any = None
    # The greatest value may be longer: this is how it begins.
    cut: bool = False
    # Rows may have a value.
    values: bool = True
    # Rows may have none.
    nulls: bool = True
    # NaN may be among the values, beyond the bounds.
    nan: bool = False

    def may_equal(self, value: Value) -> bool:
        """Whether a row may have this value."""
        return self._reaches_down(value) and self._reaches_up(value)

    def may_include(self, ordered: Sequence[Any]) -> bool:
        """Whether a row may have one of some values, which are in order."""
        # The least that is not below the bound: if that is too great, all others are.
        first = 0 if self.least is None else bisect_left(ordered, self.least)
        return self.values and first < len(ordered) and self._reaches_up(ordered[first])

    def may_be_less(self, value: Value, *, or_equal: bool = False) -> bool:
        """Whether a row may have a lesser value."""
        if not self.values or self.least is None:
            return self.values
        return bool(self.least <= value if or_equal else self.least < value)

    def may_be_greater(self, value: Value, *, or_equal: bool = False) -> bool:
        """Whether a row may have a greater value."""
        if not self.values or self.nan or self.greatest is None:
            return self.values
        if self.cut and str(value).startswith(self.greatest):
            return True
        return bool(self.greatest >= value if or_equal else self.greatest > value)

    def may_start_with(self, prefix: str) -> bool:
        """Whether a row may have a text that begins so."""
        if not self.values or (self.least is not None and self.least[: len(prefix)] > prefix):
            return False
        return self._reaches_up(prefix)

    def is_constant(self, value: Value) -> bool:
        """Whether there is no other value."""
        return not self.nan and not self.cut and self.least == value and self.greatest == value

    def always_starts_with(self, prefix: str) -> bool:
        """Whether there is no text that begins otherwise."""
        bounds = (self.least, self.greatest)
        return all(bound is not None and bound.startswith(prefix) for bound in bounds)

    def _reaches_down(self, value: Value) -> bool:
        return self.values and bool(self.least is None or self.least <= value)

    def _reaches_up(self, value: Value) -> bool:
        """Whether the greatest value may be this one or above; NaN aside, which no literal is."""
        if not self.values or self.greatest is None:
            return self.values
        return bool(value <= self.greatest) or (self.cut and str(value).startswith(self.greatest))


ANY_VALUE = ColumnRange()
ONLY_NULL = ColumnRange(values=False)


def range_from_statistics(
    column: Column, least: Any, greatest: Any, *, nulls: Any = None, rows: Any = None, shrunk: bool = False
) -> ColumnRange:
    """What a column of a file holds by the statistics of Delta's log; `shrunk`: rows were removed since."""
    low: Any = _bound(column, least)
    high: Any = _bound(column, greatest)
    if column.type == "timestamp":
        low, high = _moved(low, -MILLISECOND), _moved(high, MILLISECOND)
    if low is not None and high is not None and low > high:
        low = high = None
    may_lack = type(nulls) is not int or nulls != 0
    told = least is not None or greatest is not None
    if not told and not shrunk and may_lack and type(rows) is int and nulls == rows > 0:
        return ANY_VALUE if column.default is not None else ONLY_NULL
    if may_lack and column.default is not None:
        return ANY_VALUE
    cut = isinstance(high, str) and len(high.encode(errors="surrogatepass")) >= CUT_BYTES
    return ColumnRange(low, high, cut, nulls=may_lack, nan=column.type == "double")


def range_from_partition(column: Column, text: str | None) -> ColumnRange:
    """What a partition column holds in all rows of a file, by the log's text of it."""
    if text is None:
        return ANY_VALUE if column.default is not None else ONLY_NULL
    if text in ("", HIVE_NULL):
        # Some readers take it for null.
        return ANY_VALUE
    value = _of_text(column, text)
    return ANY_VALUE if value is None else ColumnRange(value, value, nulls=False)


def _of_text(column: Column, text: str) -> Value | None:
    if column.type == "string":
        return text
    if column.type in ("int", "bigint"):
        return int(text) if WHOLE.fullmatch(text) else None
    if column.type == "boolean":
        return {"true": True, "false": False}.get(text)
    return _time(text) if column.type == "timestamp" else None


def _bound(column: Column, value: Any) -> Value | None:
    """A value of the log's JSON as one of the column; none if it is of another type."""
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
    """A time that has a zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _moved(time: Any, by: timedelta) -> datetime | None:
    try:
        return None if time is None else time + by
    except OverflowError:
        return None
