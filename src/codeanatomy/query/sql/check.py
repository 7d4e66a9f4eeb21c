"""Check a statement before any engine sees it: one read-only query over the views of the catalogue.

    found = check("SELECT caller, count(*) FROM calls WHERE external GROUP BY caller")
    found.views        # ("calls",)
    found.columns      # ("caller", "count")
    found.spark_sql    # SELECT `calls`.`caller` AS `caller`, COUNT(*) AS `count` FROM `calls` AS `calls` ...
    found.duck_sql     # SELECT "calls"."caller" AS "caller", COUNT(*) AS "count" FROM "calls" AS "calls" ...
    check("SELECT nme FROM symbols")      # SqlRefused: line 1, column 8: unknown column 'nme' ...

The statement is in Spark's SQL. It is parsed into a tree: every part has to be allowed (`parts`), every name
known (`names`), and every value of a fitting type (`types`). The statement that is run is generated from the
tree: names qualified and quoted, stars expanded, comments left out, and for DuckDB rewritten by
`duck_rewrites`. A number with a point is a DOUBLE.

Columns of the answer have names of their own: a second `line` becomes `line_2`, and `count(*)` is `count`.
Tests: `tests/unit/query/test_sql.py`, `tests/unit/query/test_sql_rewrites.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any

from msgspec import Struct
from sqlglot import Token, TokenType, exp, parse, parse_one, tokenize
from sqlglot.errors import OptimizeError, ParseError, TokenError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS
from codeanatomy.query.sql.allowed import DIALECT
from codeanatomy.query.sql.diagnostics import Diagnostics
from codeanatomy.query.sql.duck_rewrites import for_duckdb
from codeanatomy.query.sql.names import check_columns, check_tables
from codeanatomy.query.sql.parts import check_parts, typed_name
from codeanatomy.query.sql.types import annotated, check_types
from codeanatomy.query.symbols import is_text

# Longer statements are not written by hand, and would take seconds to check.
CHARACTERS = 100_000
TOKENS = 5_000
# First words of a query.
BEGINNINGS = ("SELECT", "WITH", "FROM", "(")
# Whether a statement is being checked in this context.
_looking: ContextVar[bool] = ContextVar("looking", default=False)


def _is_logged(record: logging.LogRecord) -> bool:
    """SQLGlot warns on stderr of what it does not know; that is refused here."""
    return record.levelno >= logging.ERROR or not _looking.get()


logging.getLogger("sqlglot").addFilter(_is_logged)


class Checked(Struct, frozen=True):
    """A statement that is allowed."""

    text: str
    # Views that it reads.
    views: tuple[str, ...]
    # Names of the output columns, each once.
    columns: tuple[str, ...]
    # The statement with qualified names, in the SQL of Spark and of DuckDB.
    spark_sql: str
    duck_sql: str
    # The trees that they were generated from.
    tree: exp.Query
    duck_tree: exp.Query

    def first(self, rows: int) -> str:
        """Return the statement in DuckDB's SQL, with at most this number of rows."""
        limit = self.duck_tree.args.get("limit")
        if limit is not None and int(limit.expression.name) <= rows:
            return self.duck_sql
        return written(self.duck_tree.limit(rows), "duckdb")


def check(text: str) -> Checked:
    """Parse and check a statement; raise SqlRefused with diagnostics if it is not allowed."""
    problems = Diagnostics(text)
    before = _looking.set(True)
    try:
        return _checked(text, problems)
    except RecursionError:
        problems.diagnostics.clear()
        problems.add("size", "it is nested too deeply", suggestion="split it by WITH")
    finally:
        _looking.reset(before)
    problems.refuse()
    raise AssertionError


def _checked(text: str, problems: Diagnostics) -> Checked:
    root = _parsed(text, problems)
    check_parts(root, problems)
    problems.refuse()
    normalize_identifiers(root, dialect=DIALECT)
    try:
        views = check_tables(root, problems)
        problems.refuse()
        _name_columns(root, text)
        check_columns(root, problems)
        problems.refuse()
        tree = qualify(
            root, dialect=DIALECT, schema=schema(), quote_identifiers=False, validate_qualify_columns=True
        )
    except OptimizeError as problem:
        message = str(problem).splitlines()[0]
        problems.add("table" if message.startswith("Alias") else "column", message)
        problems.refuse()
        raise
    if any(each.is_star for select in tree.find_all(exp.Select) for each in select.selects):
        problems.add("clause", "the columns that * selects are not known", suggestion="name them")
        problems.refuse()
    _make_doubles(tree)
    check_types(annotated(tree, schema()), problems)
    problems.refuse()
    _escape_patterns(tree)
    columns = _unique_columns(tree)
    duck_tree = for_duckdb(tree)
    return Checked(
        text, views, columns, written(tree, DIALECT), written(duck_tree, "duckdb"), tree, duck_tree
    )


@cache
def schema() -> MappingSchema:
    """Return the columns of the views as a schema of SQLGlot."""
    known: dict[str, object] = {
        view.name: {column.name: column.ddl for column in view.columns} for view in (*VIEWS, *RECORD_VIEWS)
    }
    return MappingSchema(known, dialect=DIALECT)


def written(tree: exp.Query, dialect: str) -> str:
    """Return the statement in the SQL of an engine."""
    return tree.sql(dialect, identify=True, comments=False)


def _parsed(text: str, problems: Diagnostics) -> exp.Query:
    """Parse the text, which must be a single query."""
    _check_tokens(text, problems)
    problems.refuse()
    try:
        statements = [each for each in parse(text, read=DIALECT) if each is not None]
    except ParseError as problem:
        _add_error(text, problem.errors[0], problems)
        problems.refuse()
        raise
    root = statements[0]
    if isinstance(root, exp.Subquery) and {name for name, value in root.args.items() if value} == {"this"}:
        root = root.unnest()
    if isinstance(root, exp.Select | exp.SetOperation):
        return root
    problems.add("statement", "it is not a SELECT", suggestion="use SELECT, WITH and UNION")
    problems.refuse()
    raise AssertionError


def _add_error(text: str, error: dict[str, Any], problems: Diagnostics) -> None:
    """Report a syntax error of SQLGlot."""
    highlight = error["highlight"] or ""
    end = _offset(text, error["line"], error["col"])
    # SQLGlot's message would contain names of its classes.
    missing = str(error["description"]).startswith("Required keyword")
    message = f"something is missing after {highlight}" if missing else "this was not expected here"
    problems.add_at("syntax", message, max(end - len(highlight), 0), end)


def _check_tokens(text: str, problems: Diagnostics) -> None:
    if len(text) > CHARACTERS:
        problems.add("size", f"{len(text):,} characters, more than {CHARACTERS:,}")
        return
    if not is_text(text):
        problems.add("syntax", "it is not UTF-8", suggestion="encode it as UTF-8")
        return
    try:
        tokens = tokenize(text, read=DIALECT)
    except TokenError:
        problems.add("syntax", "a quote or a comment is not closed", suggestion="close it")
        return
    meant = [token for token in tokens if token.token_type != TokenType.SEMICOLON]
    if not meant:
        problems.add("statement", "the statement is empty", suggestion="use SELECT")
    elif len(meant) > TOKENS:
        problems.add("size", f"{len(meant):,} tokens, more than {TOKENS:,}")
    elif meant[0].text.upper() not in BEGINNINGS:
        first = meant[0].text[:40].upper()
        _at(problems, meant[0], "statement", f"{first} is not a query", "use SELECT")
    for before, token in pairwise(tokens):
        if before.token_type == TokenType.SEMICOLON != token.token_type:
            _at(problems, token, "statement", "there is a second statement", "run one statement at a time")
            return
        if before.token_type == token.token_type == TokenType.STRING:
            _at(
                problems,
                token,
                "syntax",
                "two string literals in a row",
                "write a quote inside of a string as \\'",
            )
            return


def _at(problems: Diagnostics, token: Token, code: str, message: str, suggestion: str) -> None:
    problems.add_at(code, message, token.start, token.end + 1, suggestion)


def _offset(text: str, line: int, column: int) -> int:
    """Return the offset of a line and column, counted from 1, in a text."""
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column


def _name_columns(root: exp.Query, text: str) -> None:
    """Name output columns that are function calls after the function."""
    for select in _leftmost(root):
        select.set("expressions", [_named(each, text) for each in select.selects])


def _named(value: exp.Expr, text: str) -> exp.Expr:
    function = value.this if isinstance(value, exp.Window | exp.Filter) else value
    if not isinstance(function, exp.Func) or isinstance(function, exp.Connector | exp.Cast):
        return value
    return exp.alias_(value, typed_name(function, text), quoted=True)


def _make_doubles(tree: exp.Query) -> None:
    """Cast numbers with a point to DOUBLE: the engines calculate differently with DECIMAL."""
    for each in list(tree.find_all(exp.Literal)):
        is_number = not each.is_string and not each.name.isdecimal()
        if is_number and not isinstance(each.parent, exp.Cast) and "e" not in each.name.lower():
            each.replace(parse_one(f"CAST({each.name} AS DOUBLE)", read=DIALECT))


def _escape_patterns(tree: exp.Query) -> None:
    r"""Add ESCAPE to patterns with \, which DuckDB does not treat as an escape character by default."""
    for like in tree.find_all(exp.Like, exp.ILike):
        plain = isinstance(like.expression, exp.Literal) and "\\" not in like.expression.name
        if not plain and not isinstance(like.parent, exp.Escape):
            like.replace(exp.Escape(this=like.copy(), expression=exp.Literal.string("\\")))


def _unique_columns(tree: exp.Query) -> tuple[str, ...]:
    """Make the names of the output columns unique, and return them."""
    names: dict[str, None] = {}
    for select in _leftmost(tree):
        for each in select.selects:
            name, number = each.alias_or_name, 1
            while name in names:
                number += 1
                name = f"{each.alias_or_name}_{number}"
            names[name] = None
            if isinstance(each, exp.Alias):
                each.set("alias", exp.to_identifier(name, quoted=True))
    return tuple(names)


def _leftmost(tree: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECT that names the output columns."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if isinstance(tree, exp.Select):
        yield tree
