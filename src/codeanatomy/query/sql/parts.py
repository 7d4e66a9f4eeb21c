"""Check that a statement only has allowed parts, used in a way that both engines support.

    SELECT now()                      # function: the function 'now' is not offered
    SELECT max(line, 3) FROM calls    # function: 'max' is not offered with these arguments
    SELECT * FROM calls FOR UPDATE    # clause: 'FOR UPDATE' is not offered

Every part of the tree has to be in `allowed`; of the others, only the outermost is reported.
Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from sqlglot import exp

from codeanatomy.query.sql.allowed import DIALECT, FUNCTIONS, PARTS, TYPES, arguments_of, function_arguments
from codeanatomy.query.sql.diagnostics import Complaints, closest
from codeanatomy.query.sql.duck_rewrites import replacement

LARGEST = 2**63 - 1


def check_parts(root: exp.Query, complaints: Complaints) -> None:
    """Report all parts that are not allowed, the outermost first."""
    for node in root.walk(prune=lambda each: not _allowed(each)):
        if not _allowed(node):
            _refuse_part(node, complaints)
        elif type(node) in PARTS:
            _check_part(node, complaints)
        else:
            _check_function(node, complaints)


def _check_part(node: exp.Expr, complaints: Complaints) -> None:
    """Report an allowed part that is used in a way that is not allowed."""
    if isinstance(node, exp.DataType) and (node.this not in TYPES or node.args.get("nested")):
        hint = "cast to STRING, INT, BIGINT, DOUBLE, FLOAT or BOOLEAN"
        complaints.add("type", f"nothing is cast to {node.sql(DIALECT)} here", node.parent, hint)
    elif isinstance(node, exp.Distinct) and node.args.get("on"):
        complaints.add("clause", "DISTINCT ON is not offered", node, "use min_by, max_by or row_number")
    elif isinstance(node, exp.Values) and not node.alias_column_names:
        complaints.add("clause", "VALUES without names", node, "write (VALUES (1, 2)) AS t(a, b)")
    elif isinstance(node, exp.Limit | exp.Offset) and not _whole_number(node.expression):
        complaints.add("clause", f"{node.key.upper()} needs a whole number", node)
    elif isinstance(node, exp.Select) and not node.expressions:
        complaints.add("syntax", "SELECT of nothing", node, "name what to select")
    elif isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query):
        complaints.add("syntax", "WITH needs a query", node, "write WITH name AS (SELECT ...)")
    elif isinstance(node, exp.Star) and not _spelled_out(node):
        complaints.add("clause", "a star stands for columns only in SELECT *", node.parent)
    elif isinstance(node, exp.Literal) and _whole_number(node) and int(node.name) > LARGEST:
        complaints.add("type", "a whole number of more than 64 bits", node.parent, "write it with a point")


def _check_function(node: exp.Expr, complaints: Complaints) -> None:
    """Report an allowed function with arguments that are not allowed."""
    if not arguments_of(node) <= function_arguments()[type(node)]:
        name = typed_name(node, complaints.text)
        hint = f"as in {FUNCTIONS[name]}" if name in FUNCTIONS else None
        complaints.add("function", f"{name!r} is not offered with these arguments", node, hint)
    elif isinstance(node, exp.RegexpReplace):
        _check_replacement(node.args["replacement"], complaints)


def _check_replacement(wanted: exp.Expr, complaints: Complaints) -> None:
    """Check the replacement of a match, which the engines write differently."""
    if not isinstance(wanted, exp.Literal) or not wanted.is_string:
        complaints.add("function", "what a match is replaced with is a text in quotes", wanted.parent)
    elif replacement(wanted.name) is None:
        complaints.add(
            "function",
            "a $ is followed by the number of a group",
            wanted.parent,
            "write $1, or \\\\$ for the character",
        )


def _allowed(node: exp.Expr) -> bool:
    return type(node) in PARTS or type(node) in function_arguments()


def _refuse_part(node: exp.Expr, complaints: Complaints) -> None:
    if isinstance(node.parent, exp.Table) and node is node.parent.this:
        complaints.add("table", f"{node.sql(DIALECT)[:60]} is no view", node, "name a view, such as calls")
    elif isinstance(node, exp.Func):
        name = typed_name(node, complaints.text)
        hint = closest(name, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}"
        complaints.add("function", f"the function {name[:60]!r} is not offered", node, hint)
    elif isinstance(node, exp.HexString):
        complaints.add(
            "clause", "hexadecimal digits are not offered", node, "write a number, or a text in quotes"
        )
    else:
        what = node.sql(DIALECT)[:60].strip() or node.key.upper()
        complaints.add("clause", f"{what!r} is not offered", node, "ask with plain SELECT, JOIN and GROUP BY")


def _spelled_out(star: exp.Star) -> bool:
    """Whether a star is SELECT *, SELECT x.* or count(*)."""
    column = star.parent if isinstance(star.parent, exp.Column) else star
    return isinstance(column.parent, exp.Select | exp.Count)


def _whole_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()


def typed_name(function: exp.Expr, text: str) -> str:
    """Return the name of a function as it was typed, in lower case: a function may have several names."""
    if "start" in function.meta:
        return text[function.meta["start"] : function.meta["end"] + 1].lower()
    if isinstance(function, exp.Func) and not isinstance(function, exp.Anonymous):
        return function.sql_name().lower()
    return function.name.lower() or function.key
