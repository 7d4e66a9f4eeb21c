"""Conditions in SQL: the text of a WHERE, for one table, becomes a `Predicate`.

    asked = parse_predicate(catalog.table("cpg_nodes"), "node_kind = 'CLASS' AND BSTART BETWEEN 0 AND 400")
    asked.columns                  # ("node_kind", "bstart")
    asked.sql()                    # (`node_kind` = 'CLASS' AND (`bstart` >= 0 AND `bstart` <= 400))
    parse_predicate(catalog.table("cpg_nodes"), "kind = 'CLASS'")    # PredicateError: no column kind

The text is in Spark's SQL, and names mean what they mean to Spark, whatever their case. A column held against
a literal of its type is understood; a time without a zone is UTC, whatever the session's zone. All else
becomes `Opaque`, which any row may meet: the engine decides. The text is never handed on: SQL is written anew
from what was understood, literals of other than plain characters by their bytes.

Refused are subqueries, several statements, aggregates and windows, arguments and variables, and functions
that SQLGlot does not know: `reflect` runs any method of Java. Tests: `tests/unit/delta/test_predicate.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sqlglot import Dialect, ErrorLevel, exp
from sqlglot.errors import ParseError, TokenError

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.read.column_ranges import STORED_TYPES, Value
from codeanatomy.delta.read.predicate import (
    PLAIN,
    And,
    Compare,
    Constant,
    InList,
    IsNull,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from codeanatomy.errors import PredicateError

DIALECT = "spark"
# Longer ones are not written by hand, and would take seconds to look at.
CHARACTERS = 100_000
HINT = "write a condition over its columns, such as \"path = 'a.py' AND bstart >= 100\""
REFUSED: dict[type[exp.Expr], str] = {
    exp.Query: "a subquery",
    exp.Subquery: "a subquery",
    exp.AggFunc: "an aggregate",
    exp.Window: "a window function",
    exp.UDTF: "a function that makes rows",
    exp.Star: "a star",
    exp.Placeholder: "an argument",
    exp.Parameter: "a variable",
    exp.SessionParameter: "a variable",
    exp.Anonymous: "a function that is not known",
    exp.AnonymousAggFunc: "a function that is not known",
    exp.Command: "a command",
}
COMPARED: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
}
NEGATED = (exp.NEQ, exp.NullSafeNEQ)
FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
WHOLE_TYPES = {exp.DType.INT: 2**31, exp.DType.BIGINT: 2**63}
# What is known of each kind of part; of others, two sides.
PLAIN_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.In: {"this", "expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Like: {"this", "expression", "negate"},
    exp.Cast: {"this", "to"},
    exp.TryCast: {"this", "to"},
}
# As Spark reads a time, as far as Python reads the same.
TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:\d\d)?")


class _NoLiteral:
    """A part that is no literal of the column's type."""


NO_LITERAL: Final = _NoLiteral()
# None is NULL.
Found = Value | None | _NoLiteral


def parse_predicate(table: Table, text: str) -> Predicate:
    """A condition over a table."""
    try:
        return Predicate(table.name, build_term(table, _parsed(text)))
    except RecursionError:
        raise PredicateError("the condition is nested too deeply", "split it") from None


def build_term(table: Table, tree: exp.Expr) -> Term:
    """A condition over a table that SQLGlot has read; its columns are renamed in place."""
    return _Reading(table).term(tree)


def _parsed(text: str) -> exp.Expr:
    if len(text) > CHARACTERS:
        raise PredicateError(f"a condition of {len(text):,} characters", f"{CHARACTERS:,} are allowed")
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise PredicateError("the condition is no UTF-8", "type it in UTF-8")
    try:
        found = Dialect.get_or_raise(DIALECT).parse_into(exp.Condition, text)
    except (ParseError, TokenError):
        raise PredicateError(f"{text[:200]!r} is no condition", HINT) from None
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1:
        told = "there is no condition" if not trees else "there are several statements"
        raise PredicateError(told, HINT)
    for part in trees[0].walk():
        for kind, name in REFUSED.items():
            if isinstance(part, kind):
                raise PredicateError(f"the condition has {name}: {_shown(part)}", HINT)
    return trees[0]


def _shown(part: exp.Expr) -> str:
    return part.sql(DIALECT, unsupported_level=ErrorLevel.IGNORE)[:100]


class _Reading:
    """From a tree of SQLGlot's to terms, for one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = {column.name.lower(): column for column in table.columns}

    def term(self, tree: exp.Expr) -> Term:
        for column in list(tree.find_all(exp.Column)):
            self._name(column)
        return self._term(tree)

    def _name(self, node: exp.Column) -> None:
        """Spell a column as the catalogue does, without the name of the table."""
        parts = node.parts
        if len(parts) > 1 and parts[0].name.lower() == self.table.name and self._known(parts[1].name):
            parts = parts[1:]
        column = self._known(parts[0].name)
        if column is None:
            raise PredicateError(
                f"{self.table.name} has no column {parts[0].name}",
                f"it has {', '.join(self.table.column_names)}",
            )
        first = exp.to_identifier(column.name, quoted=True)
        # The last part of a column is `this`; what stands before it are parts of a struct's path.
        names = [first, *(exp.to_identifier(part.name, quoted=True) for part in parts[1:])]
        keys = ("this", "table", "db", "catalog")
        for key, name in zip(keys, [*reversed(names), *[None] * (len(keys) - len(names))], strict=True):
            node.set(key, name)

    def _known(self, name: str) -> Column | None:
        return self.columns.get(name.lower())

    def _term(self, tree: exp.Expr) -> Term:
        tree = tree.unnest()
        if isinstance(tree, exp.And | exp.Or):
            terms = tuple(self._term(part) for part in tree.flatten())
            return And(terms) if isinstance(tree, exp.And) else Or(terms)
        if isinstance(tree, exp.Not):
            return Not(self._term(tree.this))
        if isinstance(tree, exp.Boolean):
            return Constant(bool(tree.this))
        if isinstance(tree, exp.Null) or (isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Null)):
            return Constant(None)
        read = READ.get(type(tree)) if _is_plain(tree) else None
        found = read(self, tree) if read is not None else None
        return found if found is not None else self._opaque(tree)

    def _column(self, tree: exp.Expr) -> Column | None:
        """A column as a whole."""
        tree = tree.unnest()
        return self._known(tree.name) if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None

    def _flag(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree)
        return Compare(column, "=", True) if column is not None and column.ddl == "boolean" else None

    def _compared(self, tree: exp.Expr) -> Term | None:
        operator = COMPARED[type(tree)]
        left, right = tree.this, tree.expression
        column = self._column(left)
        if column is None:
            column, right, operator = self._column(right), left, FLIPPED.get(operator, operator)
        found = _held_against(column, operator, right) if column is not None else None
        return Not(found) if found is not None and isinstance(tree, NEGATED) else found

    def _among(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        listed = tree.args.get("expressions") or []
        if not listed:
            raise PredicateError("IN needs values", "write IN ('a', 'b')")
        if column is None:
            return None
        values: list[Value] = []
        or_null = False
        for each in listed:
            found = _literal(column, each)
            if isinstance(found, _NoLiteral):
                return None
            if found is None:
                or_null = True
            else:
                values.append(found)
        return InList.of(column, values, or_null=or_null)

    def _between(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        if column is None:
            return None
        low = _held_against(column, ">=", tree.args["low"])
        high = _held_against(column, "<=", tree.args["high"])
        return And((low, high)) if low is not None and high is not None else None

    def _is(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        if column is None:
            return None
        if isinstance(tree.expression, exp.Null):
            return IsNull(column)
        return _held_against(column, "<=>", tree.expression)

    def _like(self, tree: exp.Expr) -> Term | None:
        column, pattern = self._column(tree.this), tree.expression
        if column is None or column.ddl != "string":
            return None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return None
        begin = pattern.name.removesuffix("%")
        if any(sign in begin for sign in "%_\\"):
            return None
        like: Term = StartsWith(column, begin) if begin != pattern.name else Compare(column, "=", begin)
        return Not(like) if tree.args.get("negate") else like

    def _begins(self, tree: exp.Expr) -> Term | None:
        column, prefix = self._column(tree.this), tree.expression
        if column is None or column.ddl != "string":
            return None
        found = _literal(column, prefix)
        return StartsWith(column, found) if isinstance(found, str) else None

    def _opaque(self, tree: exp.Expr) -> Opaque:
        columns = dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column))
        spark = _written(tree.transform(_as_bytes), DIALECT)
        if "${" in spark:
            # Spark puts settings and variables of the environment in their places.
            raise PredicateError(f"the condition has a variable: {spark[:100]}", HINT)
        shape = _written(tree.transform(_without_value), DIALECT).replace("`", "")
        return Opaque(tuple(columns), spark, _written(tree, "duckdb"), shape)


READ: dict[type[exp.Expr], Callable[[_Reading, exp.Expr], Term | None]] = {
    **dict.fromkeys(COMPARED, _Reading._compared),
    exp.Column: _Reading._flag,
    exp.In: _Reading._among,
    exp.Between: _Reading._between,
    exp.Is: _Reading._is,
    exp.Like: _Reading._like,
    exp.StartsWith: _Reading._begins,
}


def _is_plain(tree: exp.Expr) -> bool:
    """Whether a part has nothing that would change its meaning, such as SYMMETRIC."""
    said = {name for name, value in tree.args.items() if value}
    return said <= PLAIN_PARTS.get(type(tree), {"this", "expression"})


def _written(tree: exp.Expr, dialect: str) -> str:
    return tree.sql(dialect, comments=False, unsupported_level=ErrorLevel.IGNORE)


def _as_bytes(node: exp.Expr) -> exp.Expr:
    """A text of other than plain characters by its bytes."""
    if not isinstance(node, exp.Literal) or not node.is_string or PLAIN.fullmatch(node.name):
        return node
    return exp.cast(exp.HexString(this=node.name.encode().hex()), "STRING", dialect=DIALECT)


def _without_value(node: exp.Expr) -> exp.Expr:
    return exp.Placeholder() if isinstance(node, exp.Literal) else node


def _held_against(column: Column, operator: Operator, tree: exp.Expr) -> Term | None:
    value = _literal(column, tree)
    if isinstance(value, _NoLiteral):
        return None
    if value is None:
        return IsNull(column) if operator == "<=>" else Constant(None)
    return Compare(column, operator, value)


def _literal(column: Column, tree: exp.Expr) -> Found:
    """What a part means as a value of a column."""
    tree = tree.unnest()
    if column.ddl not in STORED_TYPES:
        return NO_LITERAL
    if isinstance(tree, exp.Null):
        return None
    if column.type == "boolean":
        return bool(tree.this) if isinstance(tree, exp.Boolean) else NO_LITERAL
    if column.type == "string":
        return tree.name if isinstance(tree, exp.Literal) and tree.is_string else NO_LITERAL
    if column.type == "timestamp":
        return _time(tree)
    sign = -1 if isinstance(tree, exp.Neg) else 1
    return _number(column, tree.this if isinstance(tree, exp.Neg) else tree, sign)


def _number(column: Column, tree: exp.Expr, sign: int) -> Found:
    limit: float = math.inf
    if not _is_plain(tree) and not isinstance(tree, exp.Literal):
        return NO_LITERAL
    if isinstance(tree, exp.Cast) and tree.to.this in WHOLE_TYPES:
        limit, tree = WHOLE_TYPES[tree.to.this], tree.this
    elif isinstance(tree, exp.Cast) and tree.to.this == exp.DType.DOUBLE and column.type == "double":
        tree = tree.this
    if not isinstance(tree, exp.Literal) or tree.is_string:
        return NO_LITERAL
    if column.type == "double":
        value = float(tree.name)
        return sign * value if math.isfinite(value) and value < limit else NO_LITERAL
    is_whole = tree.name.isdecimal() and tree.name.isascii() and len(tree.name) < 39
    return sign * int(tree.name) if is_whole and int(tree.name) < limit else NO_LITERAL


def _time(tree: exp.Expr) -> Found:
    if isinstance(tree, exp.Cast) and _is_plain(tree) and tree.to.this == exp.DType.TIMESTAMPTZ:
        tree = tree.this
    if not isinstance(tree, exp.Literal) or not tree.is_string or not TIME.fullmatch(tree.name):
        return NO_LITERAL
    try:
        found = datetime.fromisoformat(tree.name)
    except ValueError:
        return NO_LITERAL
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
