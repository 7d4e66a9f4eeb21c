"""Which columns of its tables a frame's plan filters by and joins by.

    plan_columns(frame)
    # {"cpg_nodes": PlanColumns(filters=("repo_id",), joins=("node_id",))}

Read from the optimized plan itself: the JVM writes it as JSON, node by node, with the number of each
expression. A column counts where a Filter or a Join compares it directly, under whatever name it has come
there; what is computed of a column, or passed through Python, is no column of a table any more. Conditions
that the optimizer adds (`isnotnull`) tell nothing of who filters, and are left out.

Tests: `tests/spark/test_plan_columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, json
from pyspark.sql import DataFrame

from codeanatomy.spark.jvm import ENGINE_ERRORS
from codeanatomy.spark.plans import is_cache, optimized_plan, planned_from, table_folder

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

# An expression of a plan: its class, its own fields, and what it is made of.
Node = dict[str, Any]
# A table, and a column of it.
Origin = tuple[str, str]


class PlanColumns(Struct, frozen=True):
    """Columns of a table."""

    filters: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()


def plan_columns(frame: DataFrame) -> dict[str, PlanColumns]:
    """What the plan of a frame does with the columns of the tables it reads; all of them are named."""
    try:
        plans = list(_plans(optimized_plan(frame), set()))
    except ENGINE_ERRORS:
        # Such as a plan that cannot be written; it can be run all the same.
        return {}
    origins: dict[int, Origin] = {}
    filters: dict[str, set[str]] = {}
    joins: dict[str, set[str]] = {}
    # The innermost first: what is cached, and below each node what it reads.
    for nodes, tables in reversed(plans):
        leaves = iter(tables)
        for node in nodes:
            if _kind(node) == RELATION and (name := next(leaves, None)) is not None:
                filters.setdefault(name, set())
                origins |= {_number(each[0]): (name, each[0]["name"]) for each in node.get("output", ())}
        for node in reversed(nodes):
            _follow(node, origins)
            if _kind(node) in ("Filter", "Join"):
                for compared, is_join in _compared(node, origins.get):
                    for name, column in compared:
                        of = joins if is_join else filters
                        of.setdefault(name, set()).add(column)
    return {
        name: PlanColumns(tuple(sorted(columns)), tuple(sorted(joins.get(name, ()))))
        for name, columns in filters.items()
    }


def _plans(plan: Any, seen: set[int]) -> Iterator[tuple[list[Node], list[str | None]]]:
    """A plan and those that were cached below it: their nodes, and the tables of their relations."""
    nodes: list[Node] = json.decode(plan.toJSON())
    leaves = plan.collectLeaves()
    found = [leaves.apply(number) for number in range(leaves.size())]
    yield nodes, [_table(leaf) for leaf in found if leaf.getClass().getSimpleName() == RELATION]
    for leaf in found:
        if is_cache(leaf):
            cached = leaf.cachedPlan()
            if cached.id() not in seen:
                seen.add(cached.id())
                yield from _plans(planned_from(cached), seen)


def _table(leaf: Any) -> str | None:
    """The table that a relation reads files of; none of another relation."""
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    paths = relation.location().rootPaths()
    return table_folder(paths.head().toString()) if paths.nonEmpty() else None


def _follow(node: Node, origins: dict[int, Origin]) -> None:
    """New names for columns keep their origin."""
    for each in (*node.get("projectList", ()), *node.get("aggregateExpressions", ())):
        if len(each) == 2 and _kind(each[0]) == ALIAS and _kind(each[1]) == ATTRIBUTE:
            origin = origins.get(_number(each[1]))
            if origin is not None:
                origins[_number(each[0])] = origin


def _compared(node: Node, origin: Callable[[int], Origin | None]) -> Iterator[tuple[list[Origin], bool]]:
    """The columns in each comparison of a condition, and whether it compares those of two relations."""
    condition: Sequence[Node] = node.get("condition") or ()
    for comparison, parts in _comparisons(condition):
        direct = [part for part in parts if _kind(part[0]) == ATTRIBUTE]
        found = [each for part in direct if (each := origin(_number(part[0]))) is not None]
        is_join = _kind(node) == "Join" and len(direct) > 1 and _kind(comparison) != "In"
        if found:
            yield found, is_join


def _comparisons(flat: Sequence[Node]) -> Iterator[tuple[Node, list[list[Node]]]]:
    """The comparisons that a condition connects, each with its operands; it is flat, parents first."""
    if not flat:
        return
    head, parts = flat[0], list(_parts(flat))
    if _kind(head) in CONNECTIVES:
        for part in parts:
            yield from _comparisons(part)
    elif _kind(head) in COMPARISONS:
        yield head, parts
    elif _kind(head) == ATTRIBUTE:
        # A truth value is a condition itself.
        yield head, [[head]]


def _parts(flat: Sequence[Node]) -> Iterator[list[Node]]:
    """The operands of an expression, each flat again."""
    start = 1
    for _ in range(flat[0]["num-children"]):
        end = start + _length(flat[start:])
        yield list(flat[start:end])
        start = end


def _length(flat: Iterable[Node]) -> int:
    """How many nodes the first expression of a flat list has."""
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
