"""Which columns of the tables are filtered and joined by: for statistics whose policy is `auto`.

    tables = with_lineage("lake", settings.tables)
    catalog.table("cpg_nodes", tables).lineage
    # (UsedColumn("path", "filtered by 12 scans of callers and 3 of sql"),
    #  UsedColumn("node_id", "joined by 12 scans of callers"))

What is known comes from three places: the plans of the newest builds and the questions that they have taken
over, both recorded as scans (`delta_scan_plans`), and the questions that nobody has taken over yet
(`lake.recorded_queries`). It is read once, when a run begins, without Spark, and only if a table of the run wants
it.

A column that was used once stays until so many runs have not used it, and where there are more than the
policy allows, those that were chosen before come first: a choice that changes from run to run would be a
commit of each table for nothing. Tests: `tests/unit/run/test_lineage.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec import Struct, structs

from codeanatomy.catalog.spec import Table, UsedColumn
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.lake.recorded_queries import read_queries
from codeanatomy.plan.steps import STAGES

SCANS, DECISIONS = "delta_scan_plans", "stats_decisions"
# A column that none of the newest runs has used is forgotten.
KEPT_RUNS = 20
# Purposes that a reason names; there are as many as there are verbs.
NAMED = 3


class Use(Struct, frozen=True):
    """A scan that filters or joins by a column of a table."""

    table: str
    column: str
    is_join: bool
    purpose: str


def with_lineage(root: str, tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables; those of the steps whose statistics are automatic know who uses their columns."""
    wanted = {table.name for table in tables if is_automatic(table)}
    if not wanted:
        return tuple(tables)
    runs = _newest_runs(root)
    uses: dict[str, Counter[Use]] = {name: Counter() for name in wanted}
    for use, count in chain(_recorded(root, runs), _asked(root)):
        if use.table in wanted:
            uses[use.table][use] += count
    before = _chosen_before(root, runs)
    return tuple(
        structs.replace(table, lineage=lineage_of(uses[table.name], before.get(table.name, ())))
        if table.name in wanted
        else table
        for table in tables
    )


def is_automatic(table: Table) -> bool:
    """Whether what is asked of a table decides on its statistics."""
    return table.stage in STAGES and table.write.stats_policy == "auto"


def lineage_of(uses: Counter[Use], before: Collection[str] = ()) -> tuple[UsedColumn, ...]:
    """The columns of a table by use: first those that were chosen before, then the most used ones."""
    counts: Counter[str] = Counter()
    for use, count in uses.items():
        counts[use.column] += count
    order = sorted(counts, key=lambda name: (name not in before, -counts[name], name))
    return tuple(UsedColumn(name, _reason(uses, name)) for name in order)


def _reason(uses: Counter[Use], column: str) -> str:
    """Who uses a column, in words.

    >>> scan = Use("cpg_nodes", "path", False, "callers")
    >>> _reason(Counter({scan: 12, structs.replace(scan, purpose="sql", is_join=True): 1}), "path")
    'filtered by 12 scans of callers, joined by 1 scan of sql'
    """
    told = []
    for word, is_join in (("filtered", False), ("joined", True)):
        found = {
            use.purpose: count
            for use, count in uses.items()
            if (use.column, use.is_join) == (column, is_join)
        }
        if found:
            told.append(f"{word} by {_scans(found)}")
    return ", ".join(told)


def _scans(counts: dict[str, int]) -> str:
    first, *others = sorted(counts, key=lambda name: (-counts[name], name))
    told = [f"{counts[first]:,} scan{'s' if counts[first] > 1 else ''} of {first}"]
    told += [f"{counts[name]:,} of {name}" for name in others[: NAMED - 1]]
    more = sum(counts[name] for name in others[NAMED - 1 :])
    return " and ".join([*told, *([f"{more:,} of others"] if more else [])])


def _newest_runs(root: str) -> list[str]:
    """The newest runs; their names are in the order of time."""
    return sorted({row.run_id for row in read_manifest(root)})[-KEPT_RUNS:]


def _recorded(root: str, runs: Sequence[str]) -> Iterator[tuple[Use, int]]:
    """What the newest runs have recorded: scans of their plans, and the questions they have taken over."""
    columns = ("table_name", "purpose", "filter_columns", "join_columns", "scans")
    for row in _rows(root, SCANS, columns, runs):
        used = _uses(row["table_name"], row["purpose"], row["filter_columns"], row["join_columns"])
        yield from ((use, row["scans"] or 1) for use in used)


def _asked(root: str) -> Iterator[tuple[Use, int]]:
    """Questions since the newest run."""
    for each in read_queries(root):
        used = _uses(each.table, each.purpose, each.filter_columns, each.join_columns)
        yield from ((use, each.count) for use in used)


def _uses(
    table: str, purpose: str, filters: Iterable[str] | None, joins: Iterable[str] | None
) -> Iterator[Use]:
    yield from (Use(table, column, False, purpose) for column in filters or ())
    yield from (Use(table, column, True, purpose) for column in joins or ())


def _chosen_before(root: str, runs: Sequence[str]) -> dict[str, list[str]]:
    """What was last decided, by table."""
    rows = _rows(root, DECISIONS, ("run_id", "table_name", "lineage_columns"), runs)
    return {
        row["table_name"]: row["lineage_columns"] or [] for row in sorted(rows, key=lambda row: row["run_id"])
    }


def _rows(root: str, name: str, columns: Sequence[str], runs: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of the newest runs; a lake that has none, or that cannot be read, is no reason not to build."""
    if not runs:
        return []
    import pyarrow.compute as pc

    with suppress(CodeAnatomyError):
        where = pc.field("run_id").isin(list(runs))
        # The first one lets files of older runs be skipped.
        found = light_table(root, name, columns, (pc.field("run_id") >= runs[0]) & where)
        return list(found.to_pylist())
    return []
