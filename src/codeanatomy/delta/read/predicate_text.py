"""Parse a SQL WHERE condition over one table into a `Predicate`.

    nodes = catalog.table("cpg_nodes")
    predicate = parse_predicate(nodes, "node_kind = 'CLASS' AND BSTART BETWEEN 0 AND 400")
    predicate.columns                  # ("node_kind", "bstart")
    predicate.sql()                    # (`node_kind` = 'CLASS' AND (`bstart` >= 0 AND `bstart` <= 400))
    parse_predicate(nodes, "kind = 'CLASS'")    # PredicateError: no column kind

The text is Spark SQL; names are case-insensitive as in Spark. Comparisons of a column with a literal of its
type are understood; a timestamp without a zone is UTC, whatever the session's zone. Everything else becomes
`Opaque`, which never prunes a file and is left to the engine. The text itself is never passed on: SQL is
generated again from the parsed terms, with special characters of strings written as bytes.

Subqueries, several statements, aggregates, window functions, parameters, variables, and functions unknown to
SQLGlot are refused: `reflect` runs any method of Java. Tests: `tests/unit/delta/test_predicate.py`.
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
# Limit of the length: longer conditions are not written by hand, and would take seconds to parse.
MAX_CHARACTERS = 100_000
HINT = "write a condition over its columns, such as \"path = 'a.py' AND bstart >= 100\""
REFUSED: dict[type[exp.Expr], str] = {
    exp.Query: "a subquery",
    exp.Subquery: "a subquery",
    exp.AggFunc: "an aggregate",
    exp.Window: "a window function",
    exp.UDTF: "a table function",
    exp.Star: "a star",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a variable",
    exp.SessionParameter: "a variable",
    exp.Anonymous: "an unknown function",
    exp.AnonymousAggFunc: "an unknown function",
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
# Arguments of each expression type that are supported; by default, the two operands.
KNOWN_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.In: {"this", "expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Like: {"this", "expression", "negate"},
    exp.Cast: {"this", "to"},
    exp.TryCast: {"this", "to"},
}
# Timestamps that Spark and Python parse to the same value.
TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:\d\d)?")


class _NoLiteral:
    """The result for an expression that is not a literal of the column's type."""


NO_LITERAL: Final = _NoLiteral()
# None is NULL.
LiteralValue = Value | None | _NoLiteral


def parse_predicate(table: Table, text: str) -> Predicate:
    """Parse a condition over a table; raise PredicateError if it is invalid or not allowed."""
    try:
        return Predicate(table.name, build_term(table, _parse_condition(text)))
    except RecursionError:
        raise PredicateError(
            "the condition is nested too deeply", "split it into several simpler queries"
        ) from None


def build_term(table: Table, tree: exp.Expr) -> Term:
    """Convert a condition parsed by SQLGlot to a term; its columns are renamed in place."""
    return _TermBuilder(table).term(tree)


def _parse_condition(text: str) -> exp.Expr:
    if len(text) > MAX_CHARACTERS:
        raise PredicateError(
            f"the condition has {len(text):,} characters", f"at most {MAX_CHARACTERS:,} are allowed"
        )
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise PredicateError("the condition is not valid UTF-8", "encode it in UTF-8")
    try:
        parsed = Dialect.get_or_raise(DIALECT).parse_into(exp.Condition, text)
    except (ParseError, TokenError):
        raise PredicateError(f"{text[:200]!r} is not a condition", HINT) from None
    trees = [tree for tree in parsed if tree is not None]
    if len(trees) != 1:
        message = "the condition is empty" if not trees else "the condition has several statements"
        raise PredicateError(message, HINT)
    for part in trees[0].walk():
        for kind, name in REFUSED.items():
            if isinstance(part, kind):
                raise PredicateError(f"the condition has {name}: {_excerpt(part)}", HINT)
    return trees[0]


def _excerpt(part: exp.Expr) -> str:
    return part.sql(DIALECT, unsupported_level=ErrorLevel.IGNORE)[:100]


class _TermBuilder:
    """Converts SQLGlot trees to terms over one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = {column.name.lower(): column for column in table.columns}

    def term(self, tree: exp.Expr) -> Term:
        """Convert a condition, after resolving its column names."""
        for column in list(tree.find_all(exp.Column)):
            self._rename(column)
        return self._term(tree)

    def _rename(self, node: exp.Column) -> None:
        """Spell a column as the catalogue does, without the table name."""
        parts = node.parts
        if len(parts) > 1 and parts[0].name.lower() == self.table.name and self._known(parts[1].name):
            parts = parts[1:]
        column = self._known(parts[0].name)
        if column is None:
            raise PredicateError(
                f"{self.table.name} has no column {parts[0].name}",
                f"use one of {', '.join(self.table.column_names)}",
            )
        first = exp.to_identifier(column.name, quoted=True)
        # SQLGlot stores the last part of a dotted name in `this`, and the parts before it in the other keys.
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
        convert = CONVERTERS.get(type(tree)) if _has_known_arguments(tree) else None
        term = convert(self, tree) if convert is not None else None
        return term if term is not None else self._opaque(tree)

    def _column(self, tree: exp.Expr) -> Column | None:
        """Return the column of an expression that is only a column."""
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
        term = _comparison(column, operator, right) if column is not None else None
        return Not(term) if term is not None and isinstance(tree, NEGATED) else term

    def _in_list(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        listed = tree.args.get("expressions") or []
        if not listed:
            raise PredicateError("IN has no values", "write a list of values, such as IN ('a', 'b')")
        if column is None:
            return None
        values: list[Value] = []
        or_null = False
        for each in listed:
            value = _literal(column, each)
            if isinstance(value, _NoLiteral):
                return None
            if value is None:
                or_null = True
            else:
                values.append(value)
        return InList.of(column, values, or_null=or_null)

    def _between(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        if column is None:
            return None
        low = _comparison(column, ">=", tree.args["low"])
        high = _comparison(column, "<=", tree.args["high"])
        return And((low, high)) if low is not None and high is not None else None

    def _is(self, tree: exp.Expr) -> Term | None:
        column = self._column(tree.this)
        if column is None:
            return None
        if isinstance(tree.expression, exp.Null):
            return IsNull(column)
        return _comparison(column, "<=>", tree.expression)

    def _like(self, tree: exp.Expr) -> Term | None:
        column, pattern = self._column(tree.this), tree.expression
        if column is None or column.ddl != "string":
            return None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return None
        prefix = pattern.name.removesuffix("%")
        if any(wildcard in prefix for wildcard in "%_\\"):
            return None
        like: Term = StartsWith(column, prefix) if prefix != pattern.name else Compare(column, "=", prefix)
        return Not(like) if tree.args.get("negate") else like

    def _starts_with(self, tree: exp.Expr) -> Term | None:
        column, prefix = self._column(tree.this), tree.expression
        if column is None or column.ddl != "string":
            return None
        value = _literal(column, prefix)
        return StartsWith(column, value) if isinstance(value, str) else None

    def _opaque(self, tree: exp.Expr) -> Opaque:
        columns = dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column))
        spark = _to_sql(tree.transform(_as_bytes), DIALECT)
        if "${" in spark:
            # Spark would substitute settings and environment variables.
            raise PredicateError(f"the condition has a variable: {spark[:100]}", HINT)
        shape = _to_sql(tree.transform(_without_value), DIALECT).replace("`", "")
        return Opaque(tuple(columns), spark, _to_sql(tree, "duckdb"), shape)


CONVERTERS: dict[type[exp.Expr], Callable[[_TermBuilder, exp.Expr], Term | None]] = {
    **dict.fromkeys(COMPARED, _TermBuilder._compared),
    exp.Column: _TermBuilder._flag,
    exp.In: _TermBuilder._in_list,
    exp.Between: _TermBuilder._between,
    exp.Is: _TermBuilder._is,
    exp.Like: _TermBuilder._like,
    exp.StartsWith: _TermBuilder._starts_with,
}


def _has_known_arguments(tree: exp.Expr) -> bool:
    """Return whether an expression has no argument that changes its meaning, such as SYMMETRIC."""
    given = {name for name, value in tree.args.items() if value}
    return given <= KNOWN_ARGUMENTS.get(type(tree), {"this", "expression"})


def _to_sql(tree: exp.Expr, dialect: str) -> str:
    return tree.sql(dialect, comments=False, unsupported_level=ErrorLevel.IGNORE)


def _as_bytes(node: exp.Expr) -> exp.Expr:
    """Replace a string with special characters by its bytes."""
    if not isinstance(node, exp.Literal) or not node.is_string or PLAIN.fullmatch(node.name):
        return node
    return exp.cast(exp.HexString(this=node.name.encode().hex()), "STRING", dialect=DIALECT)


def _without_value(node: exp.Expr) -> exp.Expr:
    return exp.Placeholder() if isinstance(node, exp.Literal) else node


def _comparison(column: Column, operator: Operator, tree: exp.Expr) -> Term | None:
    value = _literal(column, tree)
    if isinstance(value, _NoLiteral):
        return None
    if value is None:
        return IsNull(column) if operator == "<=>" else Constant(None)
    return Compare(column, operator, value)


def _literal(column: Column, tree: exp.Expr) -> LiteralValue:
    """Return the value of an expression as a literal of a column's type."""
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


def _number(column: Column, tree: exp.Expr, sign: int) -> LiteralValue:
    limit: float = math.inf
    if not _has_known_arguments(tree) and not isinstance(tree, exp.Literal):
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


def _time(tree: exp.Expr) -> LiteralValue:
    if isinstance(tree, exp.Cast) and _has_known_arguments(tree) and tree.to.this == exp.DType.TIMESTAMPTZ:
        tree = tree.this
    if not isinstance(tree, exp.Literal) or not tree.is_string or not TIME.fullmatch(tree.name):
        return NO_LITERAL
    try:
        time = datetime.fromisoformat(tree.name)
    except ValueError:
        return NO_LITERAL
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
