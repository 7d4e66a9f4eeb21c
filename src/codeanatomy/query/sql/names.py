"""Resolve the names in a statement: views, columns, and the width of its result.

    SELECT s.nme FROM symbols s      # column: unknown column 'nme' of s; did you mean name?
    SELECT repo_id FROM calls, files # ambiguous: calls and files have a column repo_id

Done before SQLGlot expands stars and aliases, so that a diagnostic has its place in the text, and so that
nothing is expanded that would become too large: `SELECT *, * FROM (SELECT *, * FROM ...)` doubles at every
level. What cannot be decided here is left to SQLGlot and to the engine. Tests:
`tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS
from codeanatomy.query.sql.diagnostics import Diagnostics, closest

# Most columns of a relation, and most values that nested aliases expand to.
WIDTH = 1_000
VIEW_COLUMNS = {view.name: view.column_names for view in (*VIEWS, *RECORD_VIEWS)}


def check_tables(root: exp.Query, problems: Diagnostics) -> tuple[str, ...]:
    """Return the views that a statement reads, and report names that are not views."""
    used: set[str] = set()
    named = {each.alias for each in root.find_all(exp.CTE)}
    # Tables that are named by WITH; all others have to be views.
    queries = {
        id(table)
        for scope in traverse_scope(root)
        for table in scope.tables
        if table.name in named and isinstance(scope.sources.get(table.alias_or_name), Scope)
    }
    for table in root.find_all(exp.Table):
        if id(table) not in queries:
            _check_table(table, problems)
            used.add(table.name)
    return tuple(sorted(used))


def _check_table(table: exp.Table, problems: Diagnostics) -> None:
    if table.args.get("db") or table.args.get("catalog"):
        name = ".".join(part.name for part in table.parts)
        problems.add("table", f"{name[:60]!r} is not a view", table, "views are named without a schema")
    elif table.name not in VIEW_COLUMNS:
        hint = closest(table.name, VIEW_COLUMNS) or f"there are {', '.join(VIEW_COLUMNS)}"
        problems.add("table", f"unknown view {table.name[:60]!r}", table.this, hint)
    elif table.alias_column_names:
        problems.add("clause", "a view alias cannot rename columns", table, "rename them with AS in a SELECT")


def check_columns(root: exp.Query, problems: Diagnostics) -> None:
    """Report columns that no relation in scope has, or that several have."""
    names = Names(problems)
    for scope in traverse_scope(root):
        names.add(scope)
        if names.too_wide:
            problems.add("size", f"it becomes wider than {WIDTH:,} columns or values", scope.expression)
            return


class Names:
    """The columns of the relations of a statement, the innermost first."""

    def __init__(self, problems: Diagnostics) -> None:
        self._problems = problems
        # By the id of the expression; none where they are not known.
        self._outputs: dict[int, tuple[str, ...] | None] = {}
        self._seen: set[int] = set()
        self.too_wide = False

    def add(self, scope: Scope) -> None:
        """Check the columns of a scope, and keep its output columns for the scopes around it."""
        for column in scope.columns:
            if id(column) not in self._seen and not isinstance(column.this, exp.Star):
                self._seen.add(id(column))
                self._resolve(column, scope)
        outputs = self._outputs_of(scope)
        if scope.is_cte or scope.is_derived_table:
            self._check_twice(scope.expression, outputs or ())
        self._outputs[id(scope.expression)] = outputs
        self.too_wide = (outputs is not None and len(outputs) > WIDTH) or expansion(scope.expression) > WIDTH

    def _outputs_of(self, scope: Scope) -> tuple[str, ...] | None:
        expression = scope.expression
        if isinstance(expression, exp.SetOperation):
            sides = [self._outputs.get(id(side.expression)) for side in scope.set_operation_scopes]
            self._check_sides(expression, sides)
            return sides[0] if sides else None
        if isinstance(expression, exp.Values):
            return tuple(expression.alias_column_names)
        if not isinstance(expression, exp.Select):
            return None
        outputs: list[str] = []
        for projection in expression.selects:
            if not projection.is_star:
                outputs.append(projection.alias_or_name)
                continue
            table = projection.table if isinstance(projection, exp.Column) else None
            for name in [table] if table else _sources(scope):
                columns = self._columns(scope, name)
                if columns is None:
                    return None
                outputs += columns
            if len(outputs) > WIDTH:
                break
        return tuple(outputs)

    def _check_sides(self, operation: exp.SetOperation, sides: list[tuple[str, ...] | None]) -> None:
        widths = [len(side) for side in sides if side is not None]
        if len({*widths}) > 1:
            self._problems.add(
                "type",
                f"{operation.key.upper()} of {widths[0]} and {widths[1]} columns",
                operation.expression,
                "select as many columns on both sides",
            )

    def _check_twice(self, expression: exp.Expr, outputs: tuple[str, ...]) -> None:
        """Report a repeated column name of a relation; only the answer may repeat one."""
        twice = next((name for name in outputs if outputs.count(name) > 1), None)
        if twice is not None and len(outputs) <= WIDTH:
            message = f"two columns are called {twice!r}"
            self._problems.add("ambiguous", message, expression, "name one of them with AS")

    def _columns(self, scope: Scope, name: str) -> tuple[str, ...] | None:
        """Return the columns of a relation that a scope selects from; None if they are not known."""
        source = _sources(scope).get(name)
        if isinstance(source, exp.Table):
            return VIEW_COLUMNS.get(source.name)
        if not isinstance(source, Scope):
            return None
        around = source.expression.parent
        # The columns of a recursive query are those of its first part.
        while isinstance(around, exp.SetOperation):
            around = around.parent
        if isinstance(around, exp.CTE | exp.Subquery) and around.alias_column_names:
            return tuple(around.alias_column_names)
        return self._outputs.get(id(source.expression))

    def _resolve(self, column: exp.Column, scope: Scope) -> None:
        if column.args.get("db") or column.args.get("catalog"):
            self._problems.add(
                "column", "a column is named as column or relation.column", column, "one dot at most"
            )
        elif column.table:
            self._resolve_qualified(column, scope)
        else:
            self._resolve_plain(column, scope)

    def _resolve_qualified(self, column: exp.Column, scope: Scope) -> None:
        for reach in _outwards(scope):
            if column.table not in _sources(reach):
                continue
            columns = self._columns(reach, column.table)
            if columns is not None and column.name not in columns:
                self._unknown(column, f"unknown column {column.name!r} of {column.table}", columns)
            return
        known = [name for reach in _outwards(scope) for name in _sources(reach)]
        hint = closest(column.table, known) or f"there is {', '.join(sorted({*known})) or 'none'}"
        self._problems.add("table", f"no relation is called {column.table!r} here", column, hint)

    def _resolve_plain(self, column: exp.Column, scope: Scope) -> None:
        near: list[str] = []
        for reach in _outwards(scope):
            known = {name: self._columns(reach, name) for name in _sources(reach)}
            owners = [name for name, columns in known.items() if columns is None or column.name in columns]
            if len(owners) > 1 and None not in known.values():
                self._check_owners(column, reach, owners)
            if owners or (reach is scope and column.name in _aliases(scope.expression)):
                return
            near += [each for columns in known.values() for each in columns or ()]
        near += _aliases(scope.expression)
        self._unknown(column, f"unknown column {column.name!r}", near)

    def _check_owners(self, column: exp.Column, scope: Scope, owners: list[str]) -> None:
        joins = scope.expression.args.get("joins") or []
        joined = {each.name for join in joins for each in join.args.get("using") or ()}
        natural = any(join.method == "NATURAL" for join in joins)
        hidden = {join.alias_or_name for join in joins if join.kind in ("SEMI", "ANTI")}
        shown = [name for name in owners if name not in hidden]
        ordered = column.find_ancestor(exp.Order, exp.Select)
        if isinstance(ordered, exp.Order) and column.name in _selected(scope.expression):
            return
        if len(shown) > 1 and column.name not in joined and not natural:
            self._problems.add(
                "ambiguous",
                f"{' and '.join(shown)} have a column {column.name}",
                column,
                f"write {' or '.join(f'{name}.{column.name}' for name in shown)}",
            )

    def _unknown(self, column: exp.Column, message: str, known: tuple[str, ...] | list[str]) -> None:
        names = ", ".join(dict.fromkeys(known))
        hint = closest(column.name, known) or (f"there are {names}" if names else "name a view: FROM symbols")
        self._problems.add("column", message, column, hint)


def expansion(expression: exp.Expr) -> int:
    """Return the most values that an alias of a SELECT expands to: it may use earlier aliases.

    >>> expansion(exp.select("1 AS a", "a + a AS b", "b + b AS c"))
    7
    """
    weights: dict[str, int] = {}
    heaviest = 0
    for projection in expression.selects if isinstance(expression, exp.Select) else ():
        used = (column.name for column in projection.find_all(exp.Column) if not column.table)
        weight = 1 + sum(weights.get(name, 0) for name in used)
        if projection.alias:
            weights[projection.alias] = weight
        heaviest = max(heaviest, weight)
    return heaviest


def _outwards(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and the scopes around it, from inner to outer."""
    reach: Scope | None = scope
    while reach is not None:
        yield reach
        reach = reach.parent


def _sources(scope: Scope) -> dict[str, exp.Table | Scope]:
    """Return the sources of a scope by name, including those of SEMI and ANTI joins."""
    joins = scope.expression.args.get("joins") or []
    partners = [join.alias_or_name for join in joins if join.kind in ("SEMI", "ANTI")]
    sources = {name: source for name, (_, source) in scope.selected_sources.items()}
    return sources | {name: scope.sources[name] for name in partners if name in scope.sources}


def _selected(expression: exp.Expr) -> list[str]:
    """Return the names of the output columns of a query."""
    return expression.named_selects if isinstance(expression, exp.Query) else []


def _aliases(expression: exp.Expr) -> list[str]:
    """Return the aliases of a query, which it may use itself."""
    if not isinstance(expression, exp.Select):
        return _selected(expression)
    return [each.alias for each in expression.selects if isinstance(each, exp.Alias)]
