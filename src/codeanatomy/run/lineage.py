"""Find the columns that scans filter and join by, for tables with the statistics policy `auto`.

    tables = with_lineage("lake", settings.tables)
    catalog.table("cpg_nodes", tables).lineage
    # (UsedColumn("path", "filtered by 12 scans of callers and 3 of sql"),
    #  UsedColumn("node_id", "joined by 12 scans of callers"))

The uses come from three sources: the scans of the newest builds and the queries that these builds collected,
both in `delta_scan_plans`, and the queries recorded since (`lake.recorded_queries`). They are read once, at
the start of a run, without Spark, and only if a table has the policy `auto`.

A column stays until KEPT_RUNS runs have not used it. If there are more columns than the policy allows, those
chosen before come first: a choice that changes with every run would commit to each table without need.
Tests: `tests/unit/run/test_lineage.py`, `tests/spark/test_lineage.py`.
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
# Number of newest runs whose scans count.
KEPT_RUNS = 20
# Number of purposes that a reason lists; there is one per command.
LISTED_PURPOSES = 3


class ColumnUse(Struct, frozen=True):
    """A scan that filters or joins by a column of a table."""

    table: str
    column: str
    is_join: bool
    purpose: str


def with_lineage(root: str, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables, with `lineage` set on those with automatic statistics."""
    automatic = {table.name for table in tables if is_automatic(table)}
    if not automatic:
        return tuple(tables)
    runs = _newest_runs(root)
    uses: dict[str, Counter[ColumnUse]] = {name: Counter() for name in automatic}
    for use, count in chain(_recorded_scans(root, runs), _recorded_queries(root)):
        if use.table in automatic:
            uses[use.table][use] += count
    before = _chosen_before(root, runs)
    return tuple(
        structs.replace(table, lineage=rank_columns(uses[table.name], before.get(table.name, ())))
        if table.name in automatic
        else table
        for table in tables
    )


def is_automatic(table: Table) -> bool:
    """Return whether the statistics columns of a table follow from its uses."""
    return table.stage in STAGES and table.write.stats_policy == "auto"


def rank_columns(uses: Counter[ColumnUse], before: Collection[str] = ()) -> tuple[UsedColumn, ...]:
    """Rank the columns of a table: those chosen before first, then by number of uses."""
    counts: Counter[str] = Counter()
    for use, count in uses.items():
        counts[use.column] += count
    order = sorted(counts, key=lambda name: (name not in before, -counts[name], name))
    return tuple(UsedColumn(name, _reason(uses, name)) for name in order)


def _reason(uses: Counter[ColumnUse], column: str) -> str:
    """Describe the uses of a column.

    >>> scan = ColumnUse("cpg_nodes", "path", False, "callers")
    >>> _reason(Counter({scan: 12, structs.replace(scan, purpose="sql", is_join=True): 1}), "path")
    'filtered by 12 scans of callers, joined by 1 scan of sql'
    """
    parts = []
    for verb, is_join in (("filtered", False), ("joined", True)):
        counts = {
            use.purpose: count
            for use, count in uses.items()
            if (use.column, use.is_join) == (column, is_join)
        }
        if counts:
            parts.append(f"{verb} by {_scans(counts)}")
    return ", ".join(parts)


def _scans(counts: dict[str, int]) -> str:
    first, *others = sorted(counts, key=lambda name: (-counts[name], name))
    parts = [f"{counts[first]:,} scan{'s' if counts[first] > 1 else ''} of {first}"]
    parts += [f"{counts[name]:,} of {name}" for name in others[: LISTED_PURPOSES - 1]]
    more = sum(counts[name] for name in others[LISTED_PURPOSES - 1 :])
    return " and ".join([*parts, *([f"{more:,} of others"] if more else [])])


def _newest_runs(root: str) -> list[str]:
    """Return the ids of the newest runs, oldest first; ids sort by time."""
    return sorted({row.run_id for row in read_manifest(root)})[-KEPT_RUNS:]


def _recorded_scans(root: str, runs: Sequence[str]) -> Iterator[tuple[ColumnUse, int]]:
    """Read the scans and queries that the newest runs recorded."""
    columns = ("table_name", "purpose", "filter_columns", "join_columns", "scans")
    for row in _rows(root, SCANS, columns, runs):
        used = _uses(row["table_name"], row["purpose"], row["filter_columns"], row["join_columns"])
        yield from ((use, row["scans"] or 1) for use in used)


def _recorded_queries(root: str) -> Iterator[tuple[ColumnUse, int]]:
    """Read the queries recorded since the newest run."""
    for each in read_queries(root):
        used = _uses(each.table, each.purpose, each.filter_columns, each.join_columns)
        yield from ((use, each.count) for use in used)


def _uses(
    table: str, purpose: str, filters: Iterable[str] | None, joins: Iterable[str] | None
) -> Iterator[ColumnUse]:
    yield from (ColumnUse(table, column, False, purpose) for column in filters or ())
    yield from (ColumnUse(table, column, True, purpose) for column in joins or ())


def _chosen_before(root: str, runs: Sequence[str]) -> dict[str, list[str]]:
    """Read the columns of the last statistics decision, by table."""
    rows = _rows(root, DECISIONS, ("run_id", "table_name", "lineage_columns"), runs)
    return {
        row["table_name"]: row["lineage_columns"] or [] for row in sorted(rows, key=lambda row: row["run_id"])
    }


def _rows(root: str, name: str, columns: Sequence[str], runs: Sequence[str]) -> list[dict[str, Any]]:
    """Read rows of the newest runs; empty if the table does not exist or cannot be read."""
    if not runs:
        return []
    import pyarrow.compute as pc

    with suppress(CodeAnatomyError):
        where = pc.field("run_id").isin(list(runs))
        # The range condition prunes files of older runs.
        rows = light_table(root, name, columns, (pc.field("run_id") >= runs[0]) & where)
        return list(rows.to_pylist())
    return []
