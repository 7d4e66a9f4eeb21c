"""Whether values are of the types they are used as, as far as SQLGlot can tell from the views' columns.

    SELECT caller + 1 FROM calls                     # type: + needs numbers, caller is a text
    SELECT * FROM calls WHERE external = 'yes'       # type: external is a truth value, 'yes' a text

Engines turn values of one type into another by rules of their own, so what one answers the other refuses;
here it is written down, with CAST. A type that is not known is not complained about.

Tests: `tests/test_sql.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sqlglot import exp

from codeanatomy.query.sql.diagnostics import Complaints, span

Family = Literal["number", "text", "truth value"]

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.Neg: "-",
}
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
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
    exp.Levenshtein,
)


def check_types(root: exp.Expr, complaints: Complaints) -> None:
    """Complain about values of the wrong type; the statement is annotated."""
    for node in root.walk():
        kind = type(node)
        if kind in ARITHMETIC:
            _need(complaints, ARITHMETIC[kind], "number", node.iter_expressions())
        elif kind in CONDITIONS:
            _need(complaints, CONDITIONS[kind], "truth value", node.iter_expressions())
        elif kind in CLAUSES:
            _need(complaints, CLAUSES[kind], "truth value", (node.this,))
        elif kind is exp.Join:
            _need(complaints, "ON", "truth value", (on for on in [node.args.get("on")] if on is not None))
        elif kind in OF_NUMBERS:
            _need(complaints, node.key, "number", (node.this,))
        elif kind in OF_TEXTS:
            _need(complaints, node.key, "text", (node.this,))
        else:
            _alike(complaints, node, compared(node))


def compared(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The values that are compared with each other, if that is what a part does."""
    if isinstance(node, COMPARISONS):
        return node.this, node.expression
    if isinstance(node, exp.Between):
        return node.this, node.args["low"], node.args["high"]
    return (node.this, *node.expressions) if isinstance(node, exp.In) else ()


def family(node: exp.Expr) -> Family | None:
    """What a value is; none if that is not known."""
    known = node.type.this if node.type is not None else None
    if known in exp.DataType.TEXT_TYPES:
        return "text"
    if known in exp.DataType.NUMERIC_TYPES:
        return "number"
    return "truth value" if known == exp.DType.BOOLEAN else None


def _need(complaints: Complaints, what: str, wanted: Family, values: Iterable[exp.Expr]) -> None:
    for value in values:
        found = family(value)
        if found not in (wanted, None):
            shown = _shown(complaints, value)
            complaints.add("type", f"{what} needs a {wanted}, {shown} is a {found}", value, _hint(wanted))


def _alike(complaints: Complaints, node: exp.Expr, values: tuple[exp.Expr, ...]) -> None:
    """Values that are compared are of one type."""
    first = family(values[0]) if values else None
    for value in values[1:]:
        found = family(value)
        if first is not None and found not in (first, None):
            complaints.add(
                "type",
                f"{_shown(complaints, values[0])} is a {first}, {_shown(complaints, value)} a {found}",
                node,
                _hint(first),
            )
            return


def _shown(complaints: Complaints, value: exp.Expr) -> str:
    start, end = span(value)
    return value.sql("spark")[:60] if start is None else complaints.text[start:end][:60]


def _hint(wanted: Family) -> str:
    return {
        "number": "write a number, or CAST(... AS BIGINT)",
        "text": "write a text in quotes, or CAST(... AS STRING)",
        "truth value": "write TRUE or FALSE, or compare it with something",
    }[wanted]
