"""Find the table columns that a frame's plan filters by and joins by.

    plan_columns(frame)
    # {"cpg_nodes": PlanColumns(filters=("repo_id",), joins=("node_id",))}

The optimized plan is read as JSON, node by node, with the id of each expression. A column counts where a
Filter or a Join compares it directly, under whatever alias; a value computed from a column, or passed through
Python, is no table column any more. Conditions that the optimizer adds (`isnotnull`) are left out.

Tests: `tests/spark/test_plan_columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, json
from pyspark.sql import DataFrame

from codeanatomy.spark.jvm import ENGINE_ERRORS
from codeanatomy.spark.plans import is_cache, logical_plan_of, optimized_plan, table_folder

CONNECTIVES = ("And", "Or", "Not")
COMPARISONS = (
    "EqualTo",
    "EqualNullSafe",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LessThan",
    "LessThanOrEqual",
    "In",
    "InSet",
    "IsNull",
    "StartsWith",
    "Like",
)
ATTRIBUTE, ALIAS, RELATION = "AttributeReference", "Alias", "LogicalRelation"

# A node of a plan or expression: its class, its fields and the number of its children.
Node = dict[str, Any]
# Table and column.
Origin = tuple[str, str]


class PlanColumns(Struct, frozen=True):
    """Columns of a table that a plan filters by and joins by."""

    filters: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()


def plan_columns(frame: DataFrame) -> dict[str, PlanColumns]:
    """Return the filter and join columns of each table that a frame reads; empty if that cannot be read."""
    try:
        plans = list(_plans(optimized_plan(frame), set()))
    except ENGINE_ERRORS:
        # A plan that cannot be written as JSON can be run all the same.
        return {}
    origins: dict[int, Origin] = {}
    filters: dict[str, set[str]] = {}
    joins: dict[str, set[str]] = {}
    # Innermost plans and nodes first: cached plans before the plan that reads them, children before parents.
    for nodes, tables in reversed(plans):
        leaves = iter(tables)
        for node in nodes:
            if _kind(node) == RELATION and (name := next(leaves, None)) is not None:
                filters.setdefault(name, set())
                origins |= {_number(each[0]): (name, each[0]["name"]) for each in node.get("output", ())}
        for node in reversed(nodes):
            _add_aliases(node, origins)
            if _kind(node) in ("Filter", "Join"):
                for compared, is_join in _compared(node, origins.get):
                    for name, column in compared:
                        columns_by_table = joins if is_join else filters
                        columns_by_table.setdefault(name, set()).add(column)
    return {
        name: PlanColumns(tuple(sorted(columns)), tuple(sorted(joins.get(name, ()))))
        for name, columns in filters.items()
    }


def _plans(plan: Any, seen: set[int]) -> Iterator[tuple[list[Node], list[str | None]]]:
    """Yield a plan and the cached plans below it: their nodes, and the tables of their relations."""
    nodes: list[Node] = json.decode(plan.toJSON())
    leaves = plan.collectLeaves()
    leaf_nodes = [leaves.apply(number) for number in range(leaves.size())]
    yield nodes, [_table(leaf) for leaf in leaf_nodes if leaf.getClass().getSimpleName() == RELATION]
    for leaf in leaf_nodes:
        if is_cache(leaf):
            cached = leaf.cachedPlan()
            if cached.id() not in seen:
                seen.add(cached.id())
                yield from _plans(logical_plan_of(cached), seen)


def _table(leaf: Any) -> str | None:
    """Return the table whose files a relation reads; None for other relations."""
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    paths = relation.location().rootPaths()
    return table_folder(paths.head().toString()) if paths.nonEmpty() else None


def _add_aliases(node: Node, origins: dict[int, Origin]) -> None:
    """Record the origins of aliases of columns."""
    for each in (*node.get("projectList", ()), *node.get("aggregateExpressions", ())):
        if len(each) == 2 and _kind(each[0]) == ALIAS and _kind(each[1]) == ATTRIBUTE:
            origin = origins.get(_number(each[1]))
            if origin is not None:
                origins[_number(each[0])] = origin


def _compared(node: Node, origin: Callable[[int], Origin | None]) -> Iterator[tuple[list[Origin], bool]]:
    """Yield the columns of each comparison of a condition, and whether it compares two relations."""
    condition: Sequence[Node] = node.get("condition") or ()
    for comparison, parts in _comparisons(condition):
        direct = [part for part in parts if _kind(part[0]) == ATTRIBUTE]
        columns = [each for part in direct if (each := origin(_number(part[0]))) is not None]
        is_join = _kind(node) == "Join" and len(direct) > 1 and _kind(comparison) != "In"
        if columns:
            yield columns, is_join


def _comparisons(flat: Sequence[Node]) -> Iterator[tuple[Node, list[list[Node]]]]:
    """Yield the comparisons of a condition with their operands; expressions are flat lists in preorder."""
    if not flat:
        return
    head, parts = flat[0], list(_parts(flat))
    if _kind(head) in CONNECTIVES:
        for part in parts:
            yield from _comparisons(part)
    elif _kind(head) in COMPARISONS:
        yield head, parts
    elif _kind(head) == ATTRIBUTE:
        # A boolean column is a condition itself.
        yield head, [[head]]


def _parts(flat: Sequence[Node]) -> Iterator[list[Node]]:
    """Yield the operands of an expression, each a flat list."""
    start = 1
    for _ in range(flat[0]["num-children"]):
        end = start + _length(flat[start:])
        yield list(flat[start:end])
        start = end


def _length(flat: Iterable[Node]) -> int:
    """Return the number of nodes of the first expression of a flat list."""
    missing, length = 1, 0
    for node in flat:
        missing += node["num-children"] - 1
        length += 1
        if missing == 0:
            break
    return length


def _kind(node: Node) -> str:
    return str(node["class"]).rpartition(".")[2]


def _number(node: Node) -> int:
    return int(node["exprId"]["id"])
