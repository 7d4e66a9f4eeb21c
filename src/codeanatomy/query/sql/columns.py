r"""Resolve the columns that a statement filters by, joins by and returns to the relations that it reads.

    used = columns_used(
        "SELECT f.qualname FROM (SELECT * FROM n) f JOIN e ON e.dst_node_id = f.node_id WHERE f.path = 'a'",
        {"n": ("node_id", "path", "qualname"), "e": ("dst_node_id", "src_node_id")},
    )
    used["n"].filters, used["n"].joins       # {"path"}, {"node_id"}

A column counts where it is compared itself: `path = 'a.py'`, `line BETWEEN 1 AND 9`, `name LIKE 'get_%'`. Of
`lower(name) = 'x'` nothing is known that statistics of `name` could help with. A comparison of columns of two
relations is a join, wherever it stands. What a query inside gives is followed to the relation that it comes
from; computed columns belong to no relation.

`views_used` does the same for a statement of a user, whose relations are views, which are statements
themselves. Tests: `tests/unit/query/test_sql_columns.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from codeanatomy import catalog
from codeanatomy.catalog.views import view
from codeanatomy.query.sql.allowed import DIALECT

COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Like,
    exp.StartsWith,
)
# Clauses with conditions that rows have to meet.
CONDITIONS = (exp.Where, exp.Join, exp.Having, exp.Qualify)
# Expressions that combine conditions to a condition.
CONNECTIVES = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Escape)
# Deepest nesting of queries that is followed.
DEEPEST = 50

# A relation and a column of it.
Leaf = tuple[str, str]


@dataclass
class Used:
    """The columns of a relation that a statement uses, by the way it uses them."""

    filters: set[str] = field(default_factory=set)
    joins: set[str] = field(default_factory=set)
    # All columns that are named, including those above.
    columns: set[str] = field(default_factory=set)


def columns_used(text: str | exp.Query, relations: Mapping[str, Sequence[str]]) -> dict[str, Used]:
    """Return how a statement uses the columns of relations; empty if it cannot be resolved."""
    try:
        return _walked(_qualified(text, relations), relations)
    except (SqlglotError, RecursionError):
        return {}


def views_used(tree: exp.Query, views: Sequence[str]) -> dict[str, Used]:
    """Return how a checked statement uses the columns of tables, through the views that it reads."""
    in_statement = columns_used(tree, {name: view(name).column_names for name in views})
    by_relation: dict[str, Used] = {}
    for name in views:
        inside, origins = _of_view(name)
        tables = {each: table for each, (table, _) in view(name).reads.items()}
        for each, used in inside.items():
            if each in tables:
                _add(by_relation.setdefault(tables[each], Used()), used)
        of_user = in_statement.get(name, Used())
        for part in ("filters", "joins", "columns"):
            for column in getattr(of_user, part):
                for each, origin in origins.get(column, ()):
                    if each in tables:
                        getattr(by_relation.setdefault(tables[each], Used()), part).add(origin)
    return by_relation


def _of_view(name: str) -> tuple[dict[str, Used], dict[str, set[Leaf]]]:
    """Return how a view uses the columns of its relations, and the origins of its own columns."""
    known = view(name)
    relations = {
        each: tuple(column.name for column in catalog.table(table).readable_columns)
        for each, (table, _) in known.reads.items()
    }
    relations |= {each: tuple(column.name for column in columns) for each, columns in known.supplied.items()}
    try:
        tree = _qualified(known.sql, relations)
        outer = traverse_scope(tree)[-1]
        origins = {column: set(_origins(outer, column, relations, 0)) for column in known.column_names}
        return _walked(tree, relations), origins
    except (SqlglotError, RecursionError):
        return {}, {}


def _qualified(text: str | exp.Query, relations: Mapping[str, Sequence[str]]) -> exp.Query:
    """Return the statement with qualified columns and expanded stars."""
    tree = parse_one(text, read=DIALECT) if isinstance(text, str) else text.copy()
    schema = MappingSchema(
        {name: dict.fromkeys(each, "STRING") for name, each in relations.items()}, dialect=DIALECT
    )
    qualified = qualify(
        tree, dialect=DIALECT, schema=schema, quote_identifiers=False, validate_qualify_columns=False
    )
    if not isinstance(qualified, exp.Query):
        raise SqlglotError("no query")
    return qualified


def _walked(tree: exp.Query, relations: Mapping[str, Sequence[str]]) -> dict[str, Used]:
    by_relation: dict[str, Used] = {}
    for scope in traverse_scope(tree):
        for column in scope.columns:
            leaves = list(_leaves(column, scope, relations, 0))
            if not leaves:
                continue
            how = _role(column)
            for relation, name in leaves:
                used = by_relation.setdefault(relation, Used())
                used.columns.add(name)
                if how is not None:
                    getattr(used, how).add(name)
    return by_relation


def _role(column: exp.Column) -> str | None:
    """Return whether a column is joined by or filtered by at its position; None if neither."""
    if isinstance(column.parent, CONNECTIVES):
        # A boolean is a condition itself.
        return "filters" if _is_condition(column) else None
    comparison = column.parent
    if not isinstance(comparison, COMPARISONS) or not _is_condition(comparison):
        return None
    if isinstance(comparison, exp.In) and comparison.args.get("query") is not None:
        return "joins"
    others = {
        each.table
        for each in comparison.find_all(exp.Column)
        if each is not column and each.table != column.table
    }
    return "joins" if others else "filters"


def _is_condition(node: exp.Expr) -> bool:
    """Return whether rows have to meet it: only AND, OR and NOT are between it and WHERE or ON."""
    above = node.parent
    while isinstance(above, CONNECTIVES):
        above = above.parent
    return isinstance(above, CONDITIONS)


def _leaves(
    column: exp.Column, scope: Scope, relations: Mapping[str, Sequence[str]], depth: int
) -> Iterator[Leaf]:
    """Yield the columns of relations that a column stands for; none if it is computed."""
    reach: Scope | None = scope
    while reach is not None:
        source = reach.sources.get(column.table)
        if source is not None:
            yield from _of_source(source, column.name, relations, depth)
            return
        reach = reach.parent


def _of_source(
    source: exp.Table | Scope, name: str, relations: Mapping[str, Sequence[str]], depth: int
) -> Iterator[Leaf]:
    if isinstance(source, Scope):
        yield from _origins(source, name, relations, depth + 1)
    elif name in relations.get(source.name, ()):
        yield source.name, name


def _origins(scope: Scope, name: str, relations: Mapping[str, Sequence[str]], depth: int) -> Iterator[Leaf]:
    """Yield the columns of relations that an output column of a query comes from."""
    expression = scope.expression
    if depth > DEEPEST or not isinstance(expression, exp.Query) or name not in expression.named_selects:
        return
    place = expression.named_selects.index(name)
    for part in _selects(scope):
        # All parts of a UNION have the same number of columns.
        select = part.expression
        given = select.selects[place : place + 1] if isinstance(select, exp.Select) else []
        inner = given[0].unalias() if given else None
        if isinstance(inner, exp.Column):
            yield from _leaves(inner, part, relations, depth + 1)


def _selects(scope: Scope) -> Iterator[Scope]:
    if isinstance(scope.expression, exp.SetOperation):
        for side in scope.set_operation_scopes or ():
            yield from _selects(side)
    else:
        yield scope


def _add(to: Used, more: Used) -> None:
    to.filters |= more.filters
    to.joins |= more.joins
    to.columns |= more.columns
