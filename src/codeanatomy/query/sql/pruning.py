"""Derive from a statement which rows it needs of views that are whole tables, before any file is opened.

    conditions_of(check("SELECT name FROM nodes WHERE path = 'a.py' AND length(name) > 3").tree)
    # {"nodes": (Compare(path, "=", "a.py"),)}

A condition counts if it is in the WHERE of the only SELECT that reads the view, uses only columns of that
view, and is understood as a whole (`delta.read.predicate_text`). The view has to be what the SELECT
is from: the other side of an outer join would have rows of nulls in the place of those that are left out.
Times are left to the engine, which has a zone of its own. The statement is run unchanged; this only
reduces the files that are read.

Tests: `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs
from sqlglot import exp

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.catalog.views import VIEWS, view
from codeanatomy.delta.read.predicate import And, Not, Opaque, Or, Term
from codeanatomy.delta.read.predicate_text import build_term
from codeanatomy.errors import PredicateError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.derived_columns import derived_column, derived_term
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.sql.check import Checked

# Views that are a whole table, with the name of that table.
WHOLE = {
    each.name: table
    for each in VIEWS
    for name, (table, wanted) in each.reads.items()
    if not wanted and len(each.reads) == 1 and each.sql.split() == ["SELECT", "*", "FROM", name]
}
# Sides of joins that add no rows of nulls for the left relation.
SIDES = ("", "LEFT")


def view_queries(checked: Checked, snapshot: Snapshot) -> dict[str, Query]:
    """Return the queries of the views of a statement, with its conditions on whole-table views."""
    conditions = conditions_of(checked.tree)
    queries = {name: view_query(view(name), snapshot) for name in checked.views}
    return {name: _only(query, conditions.get(name, ())) for name, query in queries.items()}


def _only(query: Query, conditions: Sequence[Term]) -> Query:
    parts = {
        name: part.meeting(*conditions) if isinstance(part, Slice) else part
        for name, part in query.relations.items()
    }
    return structs.replace(query, relations=parts) if conditions else query


def conditions_of(tree: exp.Query) -> dict[str, tuple[Term, ...]]:
    """Return the conditions that rows of each view have to meet in a checked statement."""
    named = [each for each in tree.find_all(exp.Table) if each.name in WHOLE]
    shadowed = {each.alias for each in tree.find_all(exp.CTE)}
    conditions: dict[str, tuple[Term, ...]] = {}
    for each in named:
        is_constant = [other.name for other in named].count(each.name) == 1 and each.name not in shadowed
        terms = tuple(_conditions(each, catalog.table(WHOLE[each.name]))) if is_constant else ()
        if terms:
            conditions[each.name] = terms
    return conditions


def _conditions(source: exp.Table, table: Table) -> Iterator[Term]:
    select = source.parent_select
    start = select.args.get("from_") if isinstance(select, exp.Select) else None
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if select is None or start is None or start.this is not source or where is None:
        return
    if any(join.side not in SIDES for join in select.args.get("joins") or ()):
        return
    condition = where.this.unnest()
    for part in condition.flatten() if isinstance(condition, exp.And) else (condition,):
        term = _term(part.copy(), source.alias_or_name, table)
        if term is not None:
            yield term


def _term(part: exp.Expr, alias: str, table: Table) -> Term | None:
    """Return a part of a condition as a term; None if it uses other relations or is not understood."""
    columns = list(part.find_all(exp.Column))
    if not columns or any(each.table != alias for each in columns):
        return None
    if any(derived_column(table, each.name) for each in columns):
        return _derived_term(part, table)
    known = set(table.column_names)
    if any(each.name not in known for each in columns):
        return None
    if part.find(exp.Query) or any(table.column(each.name).type == "timestamp" for each in columns):
        return None
    for each in columns:
        each.set("table", None)
    try:
        term = build_term(table, part)
    except (PredicateError, RecursionError):
        return None
    return term if _is_understood(term) else None


def _derived_term(part: exp.Expr, table: Table) -> Term | None:
    """Return the condition that a derived column equals a text, or one of some texts."""
    values = (
        part.expressions
        if isinstance(part, exp.In)
        else [part.expression]
        if isinstance(part, exp.EQ)
        else []
    )
    texts = [each.name for each in values if isinstance(each, exp.Literal) and each.is_string]
    if not values or len(texts) < len(values) or not isinstance(part.this, exp.Column):
        return None
    return derived_term(table, part.this.name, texts)


def _is_understood(term: Term) -> bool:
    if isinstance(term, And | Or):
        return all(map(_is_understood, term.terms))
    return _is_understood(term.term) if isinstance(term, Not) else not isinstance(term, Opaque)
