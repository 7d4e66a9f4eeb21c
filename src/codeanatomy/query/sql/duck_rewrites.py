r"""Rewrite Spark functions for DuckDB where both have a function of the same name with another meaning.

    CAST(line / 10 AS INT)                 # Spark cuts, DuckDB rounds:  TRY_CAST(trunc(...) AS INT)
    ceil(line / 10)                        # 3 and 3.0:                  TRY_CAST(ceil(...) AS BIGINT)
    1 / line                               # an error, not null:         1 / CASE WHEN line = 0 THEN error()
    regexp_replace(name, '(a)', '[$1]')    # $1 and \1:                  regexp_replace(name, '(a)', '[\1]')

SQLGlot translates names and sort orders, but not what is rewritten here. `for_duckdb` takes a tree with known
types and returns another one, from which only the SQL for DuckDB is generated. `REWRITES` has a function
for each class, called from the innermost part outwards.

Where Spark raises an error DuckDB does, too: a division by zero, a value that cannot be cast, a sum or a
negative number that is too large, part number 0. TRY_CAST and `nullif` give null, on both.
Tests: `tests/unit/query/test_sql.py`; `tests/spark/test_spark_lake.py` compares the answers of both engines.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp, parse_one

# Texts that Spark converts to a number: blanks around it, but no _ and no other base.
WHOLE = r"^\s*([+-]?[0-9]+)\s*$"
FRACTION = r"^\s*([+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:[+-]?inf(?:inity)?|nan))\s*$"
# Errors of a statement, with what gives null instead.
BY_ZERO = "division by zero: write x / nullif(y, 0) to get null"
NO_CAST = "a value cannot be cast to {type}: write TRY_CAST to get null"
NO_PART = "the number of a part cannot be 0"
GREATEST, LEAST = 2**63 - 1, -(2**63)
TRUE = ("t", "true", "y", "yes", "1")
FALSE = ("f", "false", "n", "no", "0")
# Digits after the point that are rounded as they are written; DuckDB's DECIMAL has 38 in all.
DIGITS = range(16)
# Most parts of a value that is repeated in the result: nested, it would double at every level.
WRITTEN_TWICE = 500
# In a replacement text: an escaped character, a group, and an invalid reference.
REFERENCE = re.compile(r"\\(?P<plain>.)|\$(?P<group>[0-9])|(?P<wrong>[\\$])", re.DOTALL)


def for_duckdb(tree: exp.Query) -> exp.Query:
    """Return a statement with the same meaning for DuckDB as this one has for Spark."""
    # The parts of a part come after it, so from the end each is rewritten after its own parts.
    rewritten = tree.copy()
    for node in reversed([each for each in rewritten.walk() if type(each) in REWRITES]):
        wanted = REWRITES[type(node)](node)
        # The part around it needs its type.
        wanted.type = node.type
        if wanted is not node:
            node.replace(wanted)
    return rewritten


def replacement(text: str) -> str | None:
    r"""Translate a replacement text from Java to RE2; None if Java would refuse it.

    >>> replacement("[$1]"), replacement(r"\$1"), replacement("$")
    ('[\\1]', '$1', None)
    """
    parts: list[str] = []
    end = 0
    for match in REFERENCE.finditer(text):
        if match["wrong"]:
            return None
        parts += [text[end : match.start()], f"\\{match['group']}" if match["group"] else ""]
        parts.append((match["plain"] or "").replace("\\", "\\\\"))
        end = match.end()
    return "".join((*parts, text[end:]))


def is_of(node: exp.Expr, types: set[exp.DType]) -> bool:
    """Return whether a value is known to have one of the types."""
    return node.type is not None and node.type.this in types


def _sql(template: str, **values: exp.Expr | None) -> exp.Expr:
    """Parse DuckDB's SQL, with values for the placeholders such as `:x`."""
    return exp.replace_placeholders(parse_one(template, read="duckdb"), **values)


def _again(value: exp.Expr) -> exp.Expr:
    """Copy a value that is repeated in the result; raise RecursionError if it is too large."""
    for count, _ in enumerate(value.walk()):
        if count > WRITTEN_TWICE:
            raise RecursionError
    return value.copy()


def _cast(node: exp.Expr) -> exp.Expr:
    """Cast as Spark does; CAST, other than TRY_CAST, fails if that gives nothing for a value."""
    value, to = node.this, node.args["to"].this
    cast = _try_cast(node)
    may_fail = (
        is_of(value, exp.DataType.TEXT_TYPES)
        if to not in exp.DataType.INTEGER_TYPES
        else not is_of(value, {to, exp.DType.BOOLEAN}) or isinstance(value, exp.Literal)
    )
    if node.args.get("safe") or not may_fail or to in exp.DataType.TEXT_TYPES:
        return cast
    message = NO_CAST.format(type=to.value)
    return _sql(
        f"coalesce(:cast, CASE WHEN :x IS NOT NULL THEN error('{message}') END)", cast=cast, x=_again(value)
    )


def _try_cast(node: exp.Expr) -> exp.Expr:
    value, to = node.this, node.args["to"].this
    if is_of(value, exp.DataType.TEXT_TYPES):
        if to == exp.DType.BOOLEAN:
            truth = [(text, "TRUE") for text in TRUE] + [(text, "FALSE") for text in FALSE]
            cases = " ".join(f"WHEN '{text}' THEN {is_true}" for text, is_true in truth)
            return _sql(f"CASE lower(trim(:x)) {cases} END", x=value)
        if to in exp.DataType.NUMERIC_TYPES:
            shape = WHOLE if to in exp.DataType.INTEGER_TYPES else FRACTION
            return exp.TryCast(this=_sql(f"regexp_extract(:x, '{shape}', 1)", x=value), to=node.args["to"])
    elif to in exp.DataType.INTEGER_TYPES and is_of(value, exp.DataType.FLOAT_TYPES):
        return exp.TryCast(this=exp.Anonymous(this="trunc", expressions=[value]), to=node.args["to"])
    return node.copy()


def _not_zero(node: exp.Expr) -> exp.Expr:
    """Fail where a number is divided by zero; null divided by zero is null."""
    left, right = node.this, node.expression
    if _constant(right) in (None, 0):
        failing = f"CASE WHEN :y = 0 AND :x IS NOT NULL THEN error('{BY_ZERO}') ELSE :again END"
        right = _sql(failing, y=right, x=_again(left), again=_again(right))
    # Not `safe`: SQLGlot would make it null.
    return node.__class__(this=left, expression=right, typed=node.args.get("typed"))


def _negative(node: exp.Expr) -> exp.Expr:
    """Fail where the least number has no counterpart; DuckDB takes a wider type."""
    if isinstance(node.this, exp.Literal) or not is_of(node, exp.DataType.INTEGER_TYPES):
        return node
    return _sql("(0 - :x)", x=node.this)


def _constant(node: exp.Expr) -> int | None:
    """Return the value of an integer literal, possibly negative; None for anything else."""
    digits = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(digits, exp.Literal) or not digits.name.isdecimal():
        return None
    return -int(digits.name) if isinstance(node, exp.Neg) else int(digits.name)


def _at_least_zero(number: exp.Expr) -> exp.Expr:
    constant = _constant(number)
    if constant is not None:
        return exp.Literal.number(max(constant, 0))
    return _sql("CASE WHEN :x < 0 THEN 0 ELSE :again END", x=number, again=_again(number))


def _side(node: exp.Expr) -> exp.Expr:
    node.set("expression", _at_least_zero(node.expression))
    return node


def _substring(node: exp.Expr) -> exp.Expr:
    start, length = node.args["start"], node.args.get("length")
    if length is not None:
        node.set("length", _at_least_zero(length))
        if _constant(start) is None:
            start = _sql("CASE WHEN :x = 0 THEN 1 ELSE :again END", x=start, again=_again(start))
        node.set("start", exp.Literal.number(1) if _constant(start) == 0 else start)
    return node


def _trim(node: exp.Expr) -> exp.Expr:
    if node.args.get("expression") is None:
        node.set("expression", exp.Literal.string(" "))
    return node


def _upper(node: exp.Expr) -> exp.Expr:
    node.set("this", _sql("replace(:x, 'ß', 'SS')", x=node.this))
    return node


def _reverse(node: exp.Expr) -> exp.Expr:
    if is_of(node.this, {exp.DType.ARRAY}):
        return exp.Anonymous(this="list_reverse", expressions=[node.this])
    return _sql("array_to_string(list_reverse(string_split(:x, '')), '')", x=node.this)


def _replace(node: exp.Expr) -> exp.Expr:
    if node.args.get("replacement") is None:
        node.set("replacement", exp.Literal.string(""))
    return node


def _split_part(node: exp.Expr) -> exp.Expr:
    number = node.args["part_index"]
    if _constant(number) in (None, 0):
        failing = f"CASE WHEN :x = 0 THEN error('{NO_PART}') ELSE :again END"
        node.set("part_index", _sql(failing, x=number, again=_again(number)))
    delimiter = node.args["delimiter"]
    if not isinstance(delimiter, exp.Literal) or not delimiter.name:
        # By nothing, Spark does not split.
        nothing = "CASE WHEN :x = '' THEN chr(0) ELSE :again END"
        node.set("delimiter", _sql(nothing, x=delimiter, again=_again(delimiter)))
    return node


def _regexp_replace(node: exp.Expr) -> exp.Expr:
    wanted = node.args["replacement"]
    node.set("replacement", exp.Literal.string(replacement(wanted.name)))
    return node


def _whole_number(node: exp.Expr) -> exp.Expr:
    """Round to a BIGINT: what is larger than any becomes the greatest one."""
    return _sql(
        "coalesce(TRY_CAST(:rounded AS BIGINT),"
        f" CASE WHEN :x > 0 THEN {GREATEST} WHEN :again < 0 THEN {LEAST} END)",
        rounded=node.copy(),
        x=_again(node.this),
        again=_again(node.this),
    )


def _double(node: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=node.copy(), to=exp.DataType.build("DOUBLE"))


def _round(node: exp.Expr) -> exp.Expr:
    digits = node.args.get("decimals")
    places = None if digits is None else _constant(digits)
    if places not in DIGITS or not is_of(node.this, exp.DataType.FLOAT_TYPES):
        return node
    # As it is written: 1.005 is a little less, but is rounded to 1.01.
    return _sql(
        f"coalesce(TRY_CAST(TRY_CAST(CAST(:x AS TEXT) AS DECIMAL(38, {places})) AS DOUBLE), :rounded)",
        x=_again(node.this),
        rounded=node.copy(),
    )


def _ln(node: exp.Expr) -> exp.Expr:
    return _sql("ln(nullif(greatest(:x, 0), 0))", x=node.this)


def _count_if(node: exp.Expr) -> exp.Expr:
    return _sql("count(nullif(:x, FALSE))", x=node.this)


def _with_nulls(node: exp.Expr) -> exp.Expr:
    name = "arg_min_null" if isinstance(node, exp.ArgMin) else "arg_max_null"
    return exp.Anonymous(this=name, expressions=[node.this, node.expression])


def _aggregated(node: exp.Expr) -> exp.Expr:
    """An array of nothing is empty, not null, a sum is a BIGINT; FILTER and OVER belong to the function."""
    inner, around = node, node.parent
    while isinstance(inner, exp.Filter | exp.Window):
        inner = inner.this
    is_whole = not isinstance(around, exp.Filter | exp.Window) or node is not around.this
    if is_whole and isinstance(inner, exp.ArrayAgg | exp.ArrayUniqueAgg):
        return _sql("coalesce(:x, [])", x=node.copy())
    if is_whole and isinstance(inner, exp.Sum) and is_of(inner, exp.DataType.INTEGER_TYPES):
        return _sql("CAST(:x AS BIGINT)", x=node.copy())
    return node


REWRITES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Div: _not_zero,
    exp.Mod: _not_zero,
    exp.IntDiv: _not_zero,
    exp.Neg: _negative,
    exp.Left: _side,
    exp.Right: _side,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.Upper: _upper,
    exp.Reverse: _reverse,
    exp.Replace: _replace,
    exp.SplitPart: _split_part,
    exp.RegexpReplace: _regexp_replace,
    exp.Ceil: _whole_number,
    exp.Floor: _whole_number,
    exp.Sign: _double,
    exp.Round: _round,
    exp.Ln: _ln,
    exp.CountIf: _count_if,
    exp.ArgMin: _with_nulls,
    exp.ArgMax: _with_nulls,
    exp.Sum: _aggregated,
    exp.ArrayAgg: _aggregated,
    exp.ArrayUniqueAgg: _aggregated,
    exp.Filter: _aggregated,
    exp.Window: _aggregated,
}
