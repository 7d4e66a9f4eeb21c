"""A condition over the columns of one table, and whether rows of a data file may meet it.

    nodes = catalog.table("cpg_nodes")
    asked = Predicate.all_of(
        nodes,
        Among.of(nodes.column("node_kind"), ["FUNCTION", "CLASS"]),
        Compare(nodes.column("bstart"), "<=", 400),
    )
    asked.columns                    # ("node_kind", "bstart")
    asked.sql(DUCKDB)                # ("node_kind" IN ('CLASS', 'FUNCTION') AND "bstart" <= 400)
    asked.shape                      # ("node_kind IN (?)", "bstart <= ?"): for records, without the values
    asked.may_match(file.column_range)     # False: the file need not be read

A condition is true, false or null for a row. Of a file each part says which of these it may be, and NOT, AND
and OR say which of them follow, so a negation never rules out what it should keep: `NOT (bstart < 5)` is null
where `bstart` is, and may be true where some `bstart` may be 5 or more. What is not understood (`Opaque`) may
be all three. A file is read if the whole may be true in it.

Conditions in SQL become these terms in `delta.read.predicate_text`; here is no parser, which takes longer to
load than a lookup takes. Tests: `tests/unit/delta/test_predicate.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.read.column_ranges import ColumnRange, Value

# What a condition may be for the rows of a file, as bits.
TRUE, FALSE, NULL = 1, 2, 4
# Texts that mean the same to every parser.
PLAIN = re.compile(r"[A-Za-z0-9_.:/ -]*")

Operator = Literal["=", "<", "<=", ">", ">=", "<=>"]
RangeOf: TypeAlias = Callable[[str], ColumnRange]


class SqlDialect(Struct, frozen=True):
    """How an engine spells names and values."""

    quote: Callable[[str], str]
    literal: Callable[[Value], str]
    starts_with: str
    same: str
    # Which of the texts of an `Opaque`.
    dialect: Literal["spark", "duckdb", "shape"]


def _spark_literal(value: Value) -> str:
    """A value as Spark spells it; other than plain characters by their bytes, as `query.engines.spark` says."""
    if isinstance(value, str):
        return f"'{value}'" if PLAIN.fullmatch(value) else spark_bytes(value)
    return f"{value!r}D" if isinstance(value, float) else _other_literal(value, "TIMESTAMP")


def _duck_literal(value: Value) -> str:
    if isinstance(value, str):
        return f"'{value.replace(chr(39), chr(39) * 2)}'"
    return f"{value!r}::DOUBLE" if isinstance(value, float) else _other_literal(value, "TIMESTAMPTZ")


def _other_literal(value: Value, time: str) -> str:
    if isinstance(value, datetime):
        return f"{time} '{value.astimezone(UTC).isoformat(' ')}'"
    return str(value).upper()


def spark_bytes(text: str) -> str:
    """A text by its bytes: nothing in them is understood otherwise.

    What is no Unicode, as a name of a file may be, is no text of any table: its bytes are none either.

    >>> spark_bytes("it's")
    "CAST(X'69742773' AS STRING)"
    """
    return f"CAST(X'{text.encode(errors='surrogatepass').hex()}' AS STRING)"


SPARK = SqlDialect(lambda name: f"`{name}`", _spark_literal, "startswith", "<=>", "spark")
DUCKDB = SqlDialect(lambda name: f'"{name}"', _duck_literal, "starts_with", "IS NOT DISTINCT FROM", "duckdb")
SHAPE = SqlDialect(lambda name: name, lambda _: "?", "startswith", "<=>", "shape")


class Constant(Struct, frozen=True):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def outcomes(self, _: RangeOf) -> int:
        return {True: TRUE, False: FALSE, None: NULL}[self.value]

    def sql(self, _: SqlDialect) -> str:
        return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[self.value]


class Compare(Struct, frozen=True):
    """A column held against a value of its type."""

    column: Column
    operator: Operator
    value: Value

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        column_range, value = range_of(self.column.name), self.value
        of_null = (FALSE if self.operator == "<=>" else NULL) if column_range.nulls else 0
        if not column_range.values:
            return of_null
        # Whether some row may meet it, and whether some may not.
        match self.operator:
            case "<":
                met, missed = column_range.may_be_less(value), column_range.may_be_greater(value, or_equal=True)
            case "<=":
                met, missed = column_range.may_be_less(value, or_equal=True), column_range.may_be_greater(value)
            case ">":
                met, missed = column_range.may_be_greater(value), column_range.may_be_less(value, or_equal=True)
            case ">=":
                met, missed = column_range.may_be_greater(value, or_equal=True), column_range.may_be_less(value)
            case _:
                met, missed = column_range.may_equal(value), not column_range.is_constant(value)
        return of_null | (TRUE if met else 0) | (FALSE if missed else 0)

    def sql(self, spelling: SqlDialect) -> str:
        operator = spelling.same if self.operator == "<=>" else self.operator
        return f"{spelling.quote(self.column.name)} {operator} {spelling.literal(self.value)}"


class InList(Struct, frozen=True):
    """A column that has one of some values of its type."""

    column: Column
    # In order.
    values: tuple[Value, ...]
    # NULL is in the list too.
    or_null: bool = False

    @classmethod
    def of(cls, column: Column, values: Iterable[Value], *, or_null: bool = False) -> InList:
        """The values in any order."""
        return cls(column, tuple(sorted(set(values))), or_null)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        if not self.values and not self.or_null:
            return FALSE
        column_range = range_of(self.column.name)
        seen = NULL if column_range.nulls else 0
        if column_range.values:
            seen |= TRUE if column_range.may_include(self.values) else 0
            # A value that is not in the list may be the one that is not known.
            seen |= 0 if self._is_all_of(column_range) else NULL if self.or_null else FALSE
        return seen

    def _is_all_of(self, column_range: ColumnRange) -> bool:
        """Whether there is one value, and it is in the list."""
        value = column_range.least
        if value is None or not column_range.is_constant(value):
            return False
        place = bisect_left(self.values, value)
        return self.values[place : place + 1] == (value,)

    def sql(self, spelling: SqlDialect) -> str:
        if not self.values and not self.or_null:
            return "FALSE"
        listed = ["?"] if spelling.dialect == "shape" else [spelling.literal(each) for each in self.values]
        listed += ["NULL"] if self.or_null else []
        return f"{spelling.quote(self.column.name)} IN ({', '.join(listed)})"


class StartsWith(Struct, frozen=True):
    """A column whose text begins with another."""

    column: Column
    prefix: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        column_range = range_of(self.column.name)
        seen = NULL if column_range.nulls else 0
        if column_range.values:
            seen |= TRUE if column_range.may_start_with(self.prefix) else 0
            seen |= 0 if column_range.always_starts_with(self.prefix) else FALSE
        return seen

    def sql(self, spelling: SqlDialect) -> str:
        name, prefix = spelling.quote(self.column.name), spelling.literal(self.prefix)
        return f"{spelling.starts_with}({name}, {prefix})"


class IsNull(Struct, frozen=True):
    """A column without a value."""

    column: Column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        column_range = range_of(self.column.name)
        return (TRUE if column_range.nulls else 0) | (FALSE if column_range.values else 0)

    def sql(self, spelling: SqlDialect) -> str:
        return f"{spelling.quote(self.column.name)} IS NULL"


class Opaque(Struct, frozen=True):
    """What the log says nothing about: functions, casts, columns held against each other."""

    columns: tuple[str, ...]
    spark: str
    duckdb: str
    shape: str

    def outcomes(self, _: RangeOf) -> int:
        return TRUE | FALSE | NULL

    def sql(self, spelling: SqlDialect) -> str:
        return f"({getattr(self, spelling.dialect)})"


class Not(Struct, frozen=True):
    """The opposite; of null, null."""

    term: Term

    @property
    def columns(self) -> tuple[str, ...]:
        return self.term.columns

    def outcomes(self, range_of: RangeOf) -> int:
        return _opposite(self.term.outcomes(range_of))

    def sql(self, spelling: SqlDialect) -> str:
        return f"(NOT {self.term.sql(spelling)})"


class And(Struct, frozen=True):
    """AND."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.terms)

    def outcomes(self, range_of: RangeOf) -> int:
        seen = TRUE
        for term in self.terms:
            seen = _both(seen, term.outcomes(range_of))
        return seen

    def sql(self, spelling: SqlDialect) -> str:
        return f"({' AND '.join(term.sql(spelling) for term in self.terms)})" if self.terms else "TRUE"


class Or(Struct, frozen=True):
    """OR."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.terms)

    def outcomes(self, range_of: RangeOf) -> int:
        seen = FALSE
        for term in self.terms:
            seen = _opposite(_both(_opposite(seen), _opposite(term.outcomes(range_of))))
        return seen

    def sql(self, spelling: SqlDialect) -> str:
        return f"({' OR '.join(term.sql(spelling) for term in self.terms)})" if self.terms else "FALSE"


Term: TypeAlias = Constant | Compare | InList | StartsWith | IsNull | Opaque | Not | And | Or


class Predicate(Struct, frozen=True):
    """A condition over one table."""

    table: str
    term: Term

    @classmethod
    def all_of(cls, table: Table, *terms: Term) -> Predicate:
        """All of these conditions."""
        return cls(table.name, And(terms))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in it, each once."""
        return _columns((self.term,))

    @property
    def shape(self) -> tuple[str, ...]:
        """The conditions that all have to be met, without the values in them."""
        return tuple(term.sql(SHAPE) for term in _conjuncts(self.term))

    def sql(self, spelling: SqlDialect = SPARK) -> str:
        """The condition as an engine reads it, the same for the same condition."""
        return self.term.sql(spelling)

    def may_match(self, range_of: RangeOf) -> bool:
        """Whether rows of a file, of which the column_range of each column is known, may meet the condition."""
        return bool(self.term.outcomes(range_of) & TRUE)


def _conjuncts(term: Term) -> Iterator[Term]:
    if isinstance(term, And):
        for each in term.terms:
            yield from _conjuncts(each)
    else:
        yield term


def _columns(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def _opposite(seen: int) -> int:
    return (seen & NULL) | (FALSE if seen & TRUE else 0) | (TRUE if seen & FALSE else 0)


def _both(one: int, other: int) -> int:
    """What two conditions may be together, if each may be what it may be in any row."""
    seen = one & other & TRUE | (one | other) & FALSE
    is_null = (one & NULL and other & (TRUE | NULL)) or (other & NULL and one & (TRUE | NULL))
    return seen | (NULL if is_null else 0)
