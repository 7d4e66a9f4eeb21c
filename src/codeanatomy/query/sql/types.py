"""Check the types of values where SQLGlot can derive them from the columns of the views.

    SELECT caller + 1 FROM calls                     # type: + needs numbers, caller is a text
    SELECT * FROM calls WHERE external = 'yes'       # type: external is a boolean, 'yes' a text
    SELECT line FROM calls UNION SELECT 'none'       # type: line is a number, 'none' a text

The engines convert types by different rules, so one answers what the other refuses; here conversions have to
be written with CAST. A value of unknown type is accepted.

Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from sqlglot import Schema, exp
from sqlglot.dialects.spark import Spark
from sqlglot.optimizer.annotate_types import TypeAnnotator, annotate_types

from codeanatomy.query.sql.allowed import DIALECT, own_function
from codeanatomy.query.sql.diagnostics import Diagnostics, span
from codeanatomy.sql_functions import SqlFunction

Family = Literal["number", "text", "boolean"]

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.Neg: "-",
}
COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NullSafeEQ | exp.NullSafeNEQ
CONDITIONS: dict[type[exp.Expr], str] = {exp.And: "AND", exp.Or: "OR", exp.Not: "NOT"}
CLAUSES: dict[type[exp.Expr], str] = {exp.Where: "WHERE", exp.Having: "HAVING", exp.Qualify: "QUALIFY"}
OF_NUMBERS = (exp.Sum, exp.Avg, exp.Median, exp.Stddev, exp.StddevPop, exp.Variance, exp.VariancePop)
OF_TEXTS = (
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.RegexpReplace,
    exp.Lower,
    exp.Upper,
    exp.Length,
    exp.Trim,
    exp.Substring,
    exp.Left,
    exp.Right,
    exp.Replace,
    exp.StartsWith,
    exp.EndsWith,
    exp.Contains,
    exp.StrPosition,
    exp.Reverse,
    exp.SplitPart,
)


def annotated(tree: exp.Query, schema: Schema) -> exp.Query:
    """Return the statement annotated with the types of its values."""
    known: dict[type[exp.Expr], Any] = {
        **Spark.EXPRESSION_METADATA,
        # Types that SQLGlot does not know, or not for Spark.
        exp.Median: {"returns": exp.DType.DOUBLE},
        exp.SplitPart: {"returns": exp.DType.TEXT},
        exp.ArgMin: {"annotator": _as_its_value},
        exp.ArgMax: {"annotator": _as_its_value},
        exp.ArrayUniqueAgg: {"returns": exp.DType.ARRAY},
        exp.Anonymous: {"annotator": _as_declared},
    }
    return annotate_types(tree, schema=schema, expression_metadata=known, dialect=DIALECT)


def _as_its_value(_: TypeAnnotator, function: exp.Expr) -> exp.Expr:
    function.type = function.this.type
    return function


def _as_declared(_: TypeAnnotator, function: exp.Expr) -> exp.Expr:
    own = own_function(function)
    if own is not None:
        function.type = exp.DataType.build(own.returns, dialect=DIALECT)
    return function


def check_types(root: exp.Expr, problems: Diagnostics) -> None:
    """Report values of the wrong type in an annotated statement."""
    for node in root.walk():
        for what, wanted, values in _needs(node):
            _need(problems, what, wanted, values)
        for values in (*compared(node), *_chosen(node)):
            _alike(problems, node, values)
        if isinstance(node, exp.IntDiv):
            _need_whole(problems, "DIV", (node.this, node.expression), "use / and floor")
        own = own_function(node)
        if own is not None:
            numbers = [value for value, kind in _arguments(own, node) if kind == "BIGINT"]
            _need_whole(problems, own.name, numbers, "write CAST(... AS BIGINT)")


def _needs(node: exp.Expr) -> Iterator[tuple[str, Family, Iterable[exp.Expr]]]:
    """Yield what a part requires: its name, the required family of types, and the values."""
    kind = type(node)
    if kind in ARITHMETIC:
        yield ARITHMETIC[kind], "number", node.iter_expressions()
    elif kind in CONDITIONS:
        yield CONDITIONS[kind], "boolean", node.iter_expressions()
    elif kind in CLAUSES:
        yield CLAUSES[kind], "boolean", (node.this,)
    elif isinstance(node, exp.Join):
        yield "ON", "boolean", _given(node.args.get("on"))
    elif isinstance(node, exp.If) and not _is_compared(node):
        yield "IF", "boolean", (node.this,)
    elif kind in OF_NUMBERS:
        yield node.key, "number", (node.this,)
    elif kind in OF_TEXTS:
        yield node.key, "text", (node.this,)
    own = own_function(node)
    if own is not None:
        for value, declared in _arguments(own, node):
            yield own.name, "text" if declared == "STRING" else "number", (value,)


def _arguments(function: SqlFunction, call: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the arguments of a function of our own, each with the type of its parameter."""
    for value, (_, kind) in zip(call.expressions, function.parameters, strict=False):
        yield value, kind


def compared(node: exp.Expr) -> Iterator[tuple[exp.Expr, ...]]:
    """Yield groups of values that are compared with each other."""
    if isinstance(node, COMPARISONS | exp.Nullif):
        yield node.this, node.expression
    elif isinstance(node, exp.Between):
        yield node.this, node.args["low"], node.args["high"]
    elif isinstance(node, exp.In):
        query = node.args.get("query")
        yield node.this, *node.expressions, *(query.unnest().selects[:1] if query is not None else ())
    elif isinstance(node, exp.Case) and node.this is not None:
        yield node.this, *(branch.this for branch in node.args["ifs"])


def _chosen(node: exp.Expr) -> Iterator[tuple[exp.Expr, ...]]:
    """Yield groups of values of which one is the result, or that are in one column."""
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        yield node.this, *node.expressions
    elif isinstance(node, exp.Lag | exp.Lead):
        yield node.this, *_given(node.args.get("default"))
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield node.args["true"], *_given(node.args.get("false"))
    elif isinstance(node, exp.Case):
        yield *(branch.args["true"] for branch in node.args["ifs"]), *_given(node.args.get("default"))
    elif isinstance(node, exp.Values):
        yield from zip(*(row.expressions for row in node.expressions), strict=False)
    elif isinstance(node, exp.SetOperation):
        yield from zip(node.this.selects, node.expression.selects, strict=False)


def _given(value: exp.Expr | None) -> tuple[exp.Expr, ...]:
    return () if value is None else (value,)


def _is_compared(branch: exp.If) -> bool:
    """Return whether a branch belongs to a CASE that compares a value."""
    return isinstance(branch.parent, exp.Case) and branch.parent.this is not None


def family(node: exp.Expr) -> Family | None:
    """Return the family of the type of a value; None if it is not known."""
    known = node.type.this if node.type is not None else None
    if known in exp.DataType.TEXT_TYPES:
        return "text"
    if known in exp.DataType.NUMERIC_TYPES:
        return "number"
    return "boolean" if known == exp.DType.BOOLEAN else None


def _need(problems: Diagnostics, what: str, wanted: Family, values: Iterable[exp.Expr]) -> None:
    for value in values:
        actual = family(value)
        if actual not in (wanted, None):
            shown = _shown(problems, value)
            problems.add("type", f"{what} needs a {wanted}, {shown} is a {actual}", value, _hint(wanted))


def _alike(problems: Diagnostics, node: exp.Expr, values: tuple[exp.Expr, ...]) -> None:
    """Report the first value whose type differs from that of the values before it."""
    known = [(value, actual) for value in values if (actual := family(value)) is not None]
    for value, actual in known[1:]:
        first, wanted = known[0]
        if actual != wanted:
            problems.add(
                "type",
                f"{_shown(problems, first)} is a {wanted}, {_shown(problems, value)} a {actual}",
                node,
                _hint(wanted),
            )
            return


def _need_whole(problems: Diagnostics, what: str, values: Iterable[exp.Expr], hint: str) -> None:
    for value in values:
        if value.type is not None and value.type.this in exp.DataType.FLOAT_TYPES:
            shown = _shown(problems, value)
            problems.add("type", f"{what} needs whole numbers, {shown} has a fraction", value, hint)


def _shown(problems: Diagnostics, value: exp.Expr) -> str:
    start, end = span(value)
    return value.sql(DIALECT)[:60] if start is None else problems.text[start:end][:60]


def _hint(wanted: Family) -> str:
    return {
        "number": "write a number, or CAST(... AS BIGINT)",
        "text": "write a text in quotes, or CAST(... AS STRING)",
        "boolean": "write TRUE or FALSE, or a comparison",
    }[wanted]
