"""Represent a condition over the columns of one table, and decide whether a data file may have matching rows.

    nodes = catalog.table("cpg_nodes")
    predicate = Predicate.all_of(
        nodes,
        InList.of(nodes.column("node_kind"), ["FUNCTION", "CLASS"]),
        Compare(nodes.column("bstart"), "<=", 400),
    )
    predicate.columns                            # ("node_kind", "bstart")
    predicate.sql(DUCKDB)                        # ("node_kind" IN ('CLASS', 'FUNCTION') AND "bstart" <= 400)
    predicate.shape                              # ("node_kind IN (?)", "bstart <= ?"), for records
    predicate.may_match(file.column_range)       # False: the file need not be read

SQL has three truth values. For a file, each term returns the set of values it may have in some row, and NOT,
AND and OR combine these sets, so a negation never excludes a file wrongly: `NOT (bstart < 5)` is null where
`bstart` is, and may be true if some `bstart` may be 5 or more. A term that is not understood (`Opaque`) may
have all three values. A file is read if the whole condition may be true in it.

`delta.read.predicate_text` parses SQL into these terms; the parser is in another module because importing it
takes longer than a lookup. Tests: `tests/unit/delta/test_predicate.py`, `tests/unit/delta/test_pruning.py`.
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

# The values that a condition may have in rows of a file, as bits.
TRUE, FALSE, NULL = 1, 2, 4
# Strings that every SQL parser reads the same way.
PLAIN = re.compile(r"[A-Za-z0-9_.:/ -]*")

Operator = Literal["=", "<", "<=", ">", ">=", "<=>"]
RangeOf: TypeAlias = Callable[[str], ColumnRange]


class SqlDialect(Struct, frozen=True):
    """How an engine writes names, literals and operators."""

    quote: Callable[[str], str]
    literal: Callable[[Value], str]
    starts_with: str
    same: str
    # Selects the text of an `Opaque` term.
    name: Literal["spark", "duckdb", "shape"]


def _spark_literal(value: Value) -> str:
    """Return a Spark literal; strings with special characters are written as bytes."""
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
    """Return a string literal by its bytes, in which Spark interprets no character.

    A string that is not valid Unicode, as a file name may be, matches no string of any table.

    >>> spark_bytes("it's")
    "CAST(X'69742773' AS STRING)"
    """
    return f"CAST(X'{text.encode(errors='surrogatepass').hex()}' AS STRING)"


SPARK = SqlDialect(lambda name: f"`{name}`", _spark_literal, "startswith", "<=>", "spark")
DUCKDB = SqlDialect(lambda name: f'"{name}"', _duck_literal, "starts_with", "IS NOT DISTINCT FROM", "duckdb")
SHAPE = SqlDialect(lambda name: name, lambda _: "?", "startswith", "<=>", "shape")


class Constant(Struct, frozen=True):
    """The same truth value for every row."""

    value: bool | None

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def outcomes(self, _: RangeOf) -> int:
        return {True: TRUE, False: FALSE, None: NULL}[self.value]

    def sql(self, _: SqlDialect) -> str:
        return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[self.value]


class Compare(Struct, frozen=True):
    """A comparison of a column with a value of its type."""

    column: Column
    operator: Operator
    value: Value

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        possible, value = range_of(self.column.name), self.value
        null_result = (FALSE if self.operator == "<=>" else NULL) if possible.nulls else 0
        if not possible.values:
            return null_result
        # Whether the comparison may be true in some row, and whether it may be false.
        match self.operator:
            case "<":
                may_be_true, may_be_false = (
                    possible.may_be_less(value),
                    possible.may_be_greater(value, or_equal=True),
                )
            case "<=":
                may_be_true, may_be_false = (
                    possible.may_be_less(value, or_equal=True),
                    possible.may_be_greater(value),
                )
            case ">":
                may_be_true, may_be_false = (
                    possible.may_be_greater(value),
                    possible.may_be_less(value, or_equal=True),
                )
            case ">=":
                may_be_true, may_be_false = (
                    possible.may_be_greater(value, or_equal=True),
                    possible.may_be_less(value),
                )
            case _:
                may_be_true, may_be_false = possible.may_equal(value), not possible.is_constant(value)
        return null_result | (TRUE if may_be_true else 0) | (FALSE if may_be_false else 0)

    def sql(self, dialect: SqlDialect) -> str:
        operator = dialect.same if self.operator == "<=>" else self.operator
        return f"{dialect.quote(self.column.name)} {operator} {dialect.literal(self.value)}"


class InList(Struct, frozen=True):
    """A test whether a column has one of some values of its type."""

    column: Column
    # Sorted.
    values: tuple[Value, ...]
    # The list also contains NULL.
    or_null: bool = False

    @classmethod
    def of(cls, column: Column, values: Iterable[Value], *, or_null: bool = False) -> InList:
        """Build the term from values in any order."""
        return cls(column, tuple(sorted(set(values))), or_null)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        if not self.values and not self.or_null:
            return FALSE
        column_range = range_of(self.column.name)
        outcomes = NULL if column_range.nulls else 0
        if column_range.values:
            outcomes |= TRUE if column_range.may_include(self.values) else 0
            # With NULL in the list, a value that is not in it gives NULL instead of FALSE.
            outcomes |= 0 if self._is_all_of(column_range) else NULL if self.or_null else FALSE
        return outcomes

    def _is_all_of(self, column_range: ColumnRange) -> bool:
        """Return whether all non-null rows have the same value and it is in the list."""
        value = column_range.least
        if value is None or not column_range.is_constant(value):
            return False
        index = bisect_left(self.values, value)
        return self.values[index : index + 1] == (value,)

    def sql(self, dialect: SqlDialect) -> str:
        if not self.values and not self.or_null:
            return "FALSE"
        listed = ["?"] if dialect.name == "shape" else [dialect.literal(each) for each in self.values]
        listed += ["NULL"] if self.or_null else []
        return f"{dialect.quote(self.column.name)} IN ({', '.join(listed)})"


class StartsWith(Struct, frozen=True):
    """A test whether a string column has a prefix."""

    column: Column
    prefix: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        column_range = range_of(self.column.name)
        outcomes = NULL if column_range.nulls else 0
        if column_range.values:
            outcomes |= TRUE if column_range.may_start_with(self.prefix) else 0
            outcomes |= 0 if column_range.always_starts_with(self.prefix) else FALSE
        return outcomes

    def sql(self, dialect: SqlDialect) -> str:
        name, prefix = dialect.quote(self.column.name), dialect.literal(self.prefix)
        return f"{dialect.starts_with}({name}, {prefix})"


class IsNull(Struct, frozen=True):
    """A test whether a column is null."""

    column: Column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def outcomes(self, range_of: RangeOf) -> int:
        column_range = range_of(self.column.name)
        return (TRUE if column_range.nulls else 0) | (FALSE if column_range.values else 0)

    def sql(self, dialect: SqlDialect) -> str:
        return f"{dialect.quote(self.column.name)} IS NULL"


class Opaque(Struct, frozen=True):
    """A term that the log cannot decide: functions, casts, comparisons of two columns."""

    columns: tuple[str, ...]
    spark: str
    duckdb: str
    shape: str

    def outcomes(self, _: RangeOf) -> int:
        return TRUE | FALSE | NULL

    def sql(self, dialect: SqlDialect) -> str:
        return f"({getattr(self, dialect.name)})"


class Not(Struct, frozen=True):
    """Logical NOT; null stays null."""

    term: Term

    @property
    def columns(self) -> tuple[str, ...]:
        return self.term.columns

    def outcomes(self, range_of: RangeOf) -> int:
        return _opposite(self.term.outcomes(range_of))

    def sql(self, dialect: SqlDialect) -> str:
        return f"(NOT {self.term.sql(dialect)})"


class And(Struct, frozen=True):
    """Logical AND; true if there are no terms."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.terms)

    def outcomes(self, range_of: RangeOf) -> int:
        outcomes = TRUE
        for term in self.terms:
            outcomes = _both(outcomes, term.outcomes(range_of))
        return outcomes

    def sql(self, dialect: SqlDialect) -> str:
        return f"({' AND '.join(term.sql(dialect) for term in self.terms)})" if self.terms else "TRUE"


class Or(Struct, frozen=True):
    """Logical OR; false if there are no terms."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.terms)

    def outcomes(self, range_of: RangeOf) -> int:
        outcomes = FALSE
        for term in self.terms:
            outcomes = _opposite(_both(_opposite(outcomes), _opposite(term.outcomes(range_of))))
        return outcomes

    def sql(self, dialect: SqlDialect) -> str:
        return f"({' OR '.join(term.sql(dialect) for term in self.terms)})" if self.terms else "FALSE"


Term: TypeAlias = Constant | Compare | InList | StartsWith | IsNull | Opaque | Not | And | Or


class Predicate(Struct, frozen=True):
    """A condition over one table."""

    table: str
    term: Term

    @classmethod
    def all_of(cls, table: Table, *terms: Term) -> Predicate:
        """Combine terms with AND."""
        return cls(table.name, And(terms))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the condition, each once."""
        return _columns((self.term,))

    @property
    def shape(self) -> tuple[str, ...]:
        """Return the conjuncts of the condition, with `?` for each value."""
        return tuple(term.sql(SHAPE) for term in _conjuncts(self.term))

    def sql(self, dialect: SqlDialect = SPARK) -> str:
        """Return the condition in an engine's SQL; equal conditions give equal text."""
        return self.term.sql(dialect)

    def may_match(self, range_of: RangeOf) -> bool:
        """Return whether a file, given the range of each of its columns, may have matching rows."""
        return bool(self.term.outcomes(range_of) & TRUE)


def _conjuncts(term: Term) -> Iterator[Term]:
    if isinstance(term, And):
        for each in term.terms:
            yield from _conjuncts(each)
    else:
        yield term


def _columns(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def _opposite(outcomes: int) -> int:
    return (outcomes & NULL) | (FALSE if outcomes & TRUE else 0) | (TRUE if outcomes & FALSE else 0)


def _both(one: int, other: int) -> int:
    """Return the possible values of the AND of two conditions, assuming they are independent."""
    outcomes = one & other & TRUE | (one | other) & FALSE
    is_null = (one & NULL and other & (TRUE | NULL)) or (other & NULL and one & (TRUE | NULL))
    return outcomes | (NULL if is_null else 0)
