"""Check that a statement only has allowed parts, used in a way that both engines support.

    SELECT now()                      # function: the function 'now' is not supported
    SELECT max(line, 3) FROM calls    # function: 'max' is not supported with these arguments
    SELECT * FROM calls FOR UPDATE    # clause: 'FOR UPDATE' is not supported

Every part of the tree has to be in `allowed`; of the others, only the outermost is reported.
Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from sqlglot import exp

from codeanatomy import sql_functions
from codeanatomy.query.sql.allowed import (
    DIALECT,
    FUNCTIONS,
    MAX_NESTED,
    PARTS,
    TYPES,
    arguments_of,
    function_arguments,
    own_function,
)
from codeanatomy.query.sql.diagnostics import Diagnostics, closest
from codeanatomy.query.sql.duck_rewrites import replacement
from codeanatomy.sql_functions import SqlFunction

LARGEST = 2**63 - 1


def check_parts(root: exp.Query, problems: Diagnostics) -> None:
    """Report all parts that are not allowed, the outermost first."""
    for node in root.walk(prune=lambda each: not _allowed(each)):
        if not _allowed(node):
            _refuse_part(node, problems)
        elif type(node) in PARTS:
            _check_part(node, problems)
        else:
            _check_function(node, problems)


def _check_part(node: exp.Expr, problems: Diagnostics) -> None:
    """Report an allowed part that is used in a way that is not allowed."""
    if isinstance(node, exp.DataType) and (node.this not in TYPES or node.args.get("nested")):
        hint = "cast to STRING, INT, BIGINT, DOUBLE, FLOAT or BOOLEAN"
        problems.add("type", f"CAST to {node.sql(DIALECT)} is not supported", node.parent, hint)
    elif isinstance(node, exp.Distinct) and node.args.get("on"):
        problems.add("clause", "DISTINCT ON is not supported", node, "use min_by, max_by or row_number")
    elif isinstance(node, exp.Values) and not node.alias_column_names:
        problems.add("clause", "VALUES needs column names", node, "write (VALUES (1, 2)) AS t(a, b)")
    elif isinstance(node, exp.Limit | exp.Offset) and not _whole_number(node.expression):
        problems.add("clause", f"{node.key.upper()} needs an integer", node)
    elif isinstance(node, exp.Select) and not node.expressions:
        problems.add("syntax", "SELECT has no columns", node, "name the columns to select")
    elif isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query):
        problems.add("syntax", "WITH needs a query", node, "write WITH name AS (SELECT ...)")
    elif isinstance(node, exp.Star) and not _spelled_out(node):
        problems.add("clause", "* is supported only in SELECT * and count(*)", node.parent)
    elif isinstance(node, exp.Literal) and _whole_number(node) and int(node.name) > LARGEST:
        problems.add(
            "type", "an integer of more than 64 bits", node.parent, "write it as a double, such as 1.0e20"
        )


def _check_function(node: exp.Expr, problems: Diagnostics) -> None:
    """Report an allowed function with arguments that are not allowed."""
    own = own_function(node)
    if own is not None:
        _check_own_function(own, node, problems)
    elif not arguments_of(node) <= function_arguments()[type(node)]:
        name = typed_name(node, problems.text)
        hint = f"as in {FUNCTIONS[name]}" if name in FUNCTIONS else None
        problems.add("function", f"{name!r} is not supported with these arguments", node, hint)
    elif isinstance(node, exp.RegexpReplace):
        _check_replacement(node.args["replacement"], problems)


def _check_own_function(function: SqlFunction, node: exp.Expr, problems: Diagnostics) -> None:
    if len(node.expressions) not in function.arities:
        message = f"{function.name!r} is not supported with {len(node.expressions)} arguments"
        problems.add("function", message, node, f"as in {function.example}")
    nested, parent = 1, node.parent
    while parent is not None and nested <= MAX_NESTED:
        nested += own_function(parent) is not None
        parent = parent.parent
    if nested > MAX_NESTED:
        problems.add("size", f"{function.name!r} is nested too deeply", node, "compute the inner ids by WITH")


def _check_replacement(wanted: exp.Expr, problems: Diagnostics) -> None:
    """Check the replacement of a match, which the engines write differently."""
    if not isinstance(wanted, exp.Literal) or not wanted.is_string:
        problems.add("function", "the replacement of a match must be a string literal", wanted.parent)
    elif replacement(wanted.name) is None:
        problems.add(
            "function",
            "$ must be followed by the number of a group",
            wanted.parent,
            "write $1, or \\\\$ for the character",
        )


def _allowed(node: exp.Expr) -> bool:
    return type(node) in PARTS or type(node) in function_arguments() or own_function(node) is not None


def _refuse_part(node: exp.Expr, problems: Diagnostics) -> None:
    if isinstance(node.parent, exp.Table) and node is node.parent.this:
        problems.add("table", f"{node.sql(DIALECT)[:60]} is not a view", node, "name a view, such as calls")
    elif isinstance(node, exp.Func):
        name = typed_name(node, problems.text)
        known = (*FUNCTIONS, *sql_functions.FUNCTIONS)
        hint = closest(name, known) or f"there are {', '.join(known)}"
        problems.add("function", f"the function {name[:60]!r} is not supported", node, hint)
    elif isinstance(node, exp.HexString):
        problems.add(
            "clause", "hexadecimal literals are not supported", node, "write a number or a string literal"
        )
    else:
        what = node.sql(DIALECT)[:60].strip() or node.key.upper()
        problems.add("clause", f"{what!r} is not supported", node, "use plain SELECT, JOIN and GROUP BY")


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
