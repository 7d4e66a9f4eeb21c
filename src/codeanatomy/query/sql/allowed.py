"""List the SQL that is allowed: parts of a statement, functions and types, each by its class in SQLGlot.

What is not listed is refused; so are new kinds of statements, table functions and functions that open files.
Both engines give the same answer for each function: DuckDB has it too, SQLGlot translates it, or
`duck_rewrites` does. `FUNCTIONS` has an example of each and `FORMS` has those with other arguments; both
engines run all of them in `tests/spark/test_spark_lake.py`. Arguments without an example are refused:
`max(a, 3)` is an error for Spark, and the three greatest for DuckDB.

Left out on purpose: what reads files, the environment or the time (`input_file_name`, `current_user`, `now`),
what runs code (`reflect`, `java_method`, TRANSFORM), what makes rows (`explode`, `range`), chance (`rand`,
`any_value`, TABLESAMPLE), what makes texts of any size (`repeat`, `lpad`), and what the engines do not agree
about: `levenshtein` counts characters or bytes, a DECIMAL has more digits after a division or fewer.

Functions of our own (`codeanatomy.sql_functions`) are called with arguments in order.
Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp, parse_one

from codeanatomy import sql_functions
from codeanatomy.sql_functions import SqlFunction

DIALECT = "spark"
# Calls of our own functions inside of each other: each is written out where it is used.
MAX_NESTED = 3

# Parts of a statement.
PARTS: frozenset[type[exp.Expr]] = frozenset(
    {
        # Queries and relations.
        exp.Select,
        exp.Union,
        exp.Intersect,
        exp.Except,
        exp.Subquery,
        exp.With,
        exp.CTE,
        exp.Values,
        exp.Tuple,
        exp.From,
        exp.Join,
        exp.Table,
        exp.TableAlias,
        # Clauses.
        exp.Where,
        exp.Group,
        exp.Cube,
        exp.Rollup,
        exp.GroupingSets,
        exp.Having,
        exp.Qualify,
        exp.Order,
        exp.Ordered,
        exp.Limit,
        exp.Offset,
        exp.Distinct,
        exp.Filter,
        exp.Window,
        exp.WindowSpec,
        # Values.
        exp.Alias,
        exp.Column,
        exp.Identifier,
        exp.Star,
        exp.Literal,
        exp.Null,
        exp.Boolean,
        exp.Paren,
        exp.Case,
        exp.Cast,
        exp.TryCast,
        exp.DataType,
        exp.DataTypeParam,
        # Conditions.
        exp.And,
        exp.Or,
        exp.Not,
        exp.EQ,
        exp.NEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.NullSafeEQ,
        exp.NullSafeNEQ,
        exp.Is,
        exp.In,
        exp.Between,
        exp.Like,
        exp.ILike,
        exp.Escape,
        exp.Exists,
        # Arithmetic.
        exp.Add,
        exp.Sub,
        exp.Mul,
        exp.Div,
        exp.IntDiv,
        exp.Mod,
        exp.Neg,
        exp.DPipe,
    }
)

# By the name people know, with an example over the view `calls`.
FUNCTIONS: dict[str, str] = {
    "count": "count(DISTINCT caller)",
    "count_if": "count_if(external)",
    "sum": "sum(line)",
    "avg": "avg(line)",
    "min": "min(line)",
    "max": "max(line)",
    "min_by": "min_by(caller, line)",
    "max_by": "max_by(caller, line)",
    "bool_and": "bool_and(external)",
    "bool_or": "bool_or(external)",
    "median": "median(line)",
    "stddev": "stddev(line)",
    "stddev_pop": "stddev_pop(line)",
    "variance": "variance(line)",
    "var_pop": "var_pop(line)",
    "collect_list": "collect_list(caller)",
    "collect_set": "collect_set(caller)",
    "sort_array": "sort_array(collect_set(caller))",
    "array_join": "array_join(sort_array(collect_set(caller)), ', ')",
    "row_number": "row_number() OVER (ORDER BY line)",
    "rank": "rank() OVER (ORDER BY line)",
    "dense_rank": "dense_rank() OVER (ORDER BY line)",
    "percent_rank": "percent_rank() OVER (ORDER BY line)",
    "cume_dist": "cume_dist() OVER (ORDER BY line)",
    "ntile": "ntile(4) OVER (ORDER BY line)",
    "lag": "lag(line) OVER (ORDER BY line)",
    "lead": "lead(line, 1) OVER (ORDER BY line)",
    "first_value": "first_value(line) OVER (ORDER BY line)",
    "last_value": "last_value(line) OVER (ORDER BY line)",
    "coalesce": "coalesce(line, 0)",
    "ifnull": "ifnull(line, 0)",
    "nvl": "nvl(line, 0)",
    "nullif": "nullif(line, 0)",
    "if": "if(external, 1, 0)",
    "greatest": "greatest(line, 10)",
    "least": "least(line, 10)",
    "lower": "lower(caller)",
    "upper": "upper(caller)",
    "length": "length(caller)",
    "trim": "trim(caller)",
    "concat": "concat(caller, ' -> ', callee)",
    "concat_ws": "concat_ws('.', caller, callee)",
    "substring": "substring(caller, 1, 3)",
    "left": "left(caller, 3)",
    "right": "right(caller, 3)",
    "replace": "replace(caller, '.', '/')",
    "startswith": "startswith(caller, 'shop')",
    "endswith": "endswith(caller, 'total')",
    "contains": "contains(caller, 'cart')",
    "instr": "instr(caller, '.')",
    "reverse": "reverse(caller)",
    "split_part": "split_part(caller, '.', 1)",
    "rlike": "caller RLIKE 'ca.t'",
    "regexp_replace": "regexp_replace(caller, '[.].*', '')",
    "abs": "abs(line)",
    "ceil": "ceil(line / 2)",
    "floor": "floor(line / 2)",
    "round": "round(line / 3, 1)",
    "sign": "sign(line)",
    "sqrt": "sqrt(line)",
    "power": "power(line, 2)",
    "ln": "ln(line)",
    "exp": "exp(line / 1000)",
}

# Further forms of arguments that are allowed.
FORMS = (
    "count(*)",
    "count(DISTINCT caller, callee)",
    "sort_array(collect_list(DISTINCT caller), FALSE)",
    "lag(line, 1, 0) OVER (ORDER BY line)",
    "lead(line, 2, 0) OVER (ORDER BY line)",
    "ltrim(caller)",
    "rtrim(caller)",
    "trim(BOTH 'sh' FROM caller)",
    "trim(LEADING 's' FROM caller)",
    "trim(TRAILING 'l' FROM caller)",
    "substring(caller, 2)",
    "replace(caller, '.')",
    "position('.' IN caller)",
    "round(line / 3)",
)

# Types that a value may be cast to.
TYPES: frozenset[exp.DType] = frozenset(
    {
        exp.DType.TEXT,
        exp.DType.VARCHAR,
        exp.DType.INT,
        exp.DType.BIGINT,
        exp.DType.DOUBLE,
        exp.DType.FLOAT,
        exp.DType.BOOLEAN,
    }
)


def own_function(node: exp.Expr) -> SqlFunction | None:
    """Return the function of our own that a part calls."""
    if not isinstance(node, exp.Anonymous) or not isinstance(node.this, str):
        return None
    return sql_functions.FUNCTIONS.get(node.this.lower())


@cache
def function_arguments() -> dict[type[exp.Expr], frozenset[str]]:
    """Return the arguments that each function allows, as SQLGlot names them, by its class."""
    known: dict[type[exp.Expr], set[str]] = {}
    for example in (*FUNCTIONS.values(), *FORMS):
        for node in parse_one(f"SELECT {example}", read=DIALECT).walk():
            if type(node) not in PARTS:
                known.setdefault(type(node), set()).update(arguments_of(node))
    return {kind: frozenset(names) for kind, names in known.items()}


def arguments_of(node: exp.Expr) -> set[str]:
    """Return the names of the arguments of a function call."""
    return {name for name, value in node.args.items() if value}
