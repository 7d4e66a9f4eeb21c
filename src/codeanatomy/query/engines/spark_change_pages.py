"""Pages of the changes of tables between two runs, read by Spark.

    window = open_window("lake", "20260501T12")
    change_page(Store(spark, "lake"), window, "repo_files_v1", limit=10).rows[0]["change"]     # "changed"
    change_totals(Store(spark, "lake"), window).counts         # (ChangeCount("repo_files_v1", ...), ...)

They equal those of `query.diff.table_changes`, which reads lakes without a JVM: the rows, their order
and their total. `codeanatomy changes --engine spark` prints them.

Tests: `tests/spark/test_changes.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.light_feed import COMMIT_TIMESTAMP
from codeanatomy.delta.store import Store
from codeanatomy.query.answers import DEFAULT_LIMIT
from codeanatomy.query.diff.change_windows import RunWindow, feed_tables
from codeanatomy.query.diff.table_changes import (
    WAS,
    ChangeCount,
    ChangeCounts,
    TableChanges,
    check_page,
    commit_order,
    former_values,
    make_page,
    net_order,
    page_columns,
)
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.engines.spark_changes import commit_changes, count_changes, net_changes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def change_page(
    store: Store,
    window: RunWindow,
    name: str,
    *,
    repo_id: str | None = None,
    every_commit: bool = False,
    limit: int = DEFAULT_LIMIT,
    offset: int = 0,
) -> TableChanges:
    """List rows of a table that changed in a window."""
    check_page(limit, offset)
    changes = (commit_changes if every_commit else net_changes)(store, window, name, repo_id)
    table = store.table(name)
    order = commit_order(table) if every_commit else net_order(table)
    columns = page_columns(table, every_commit=every_commit)
    page = changes.orderBy(*(F.col(each).asc_nulls_last() for each in order)).offset(offset).limit(limit)
    rows = _commit_rows(page, columns) if every_commit else _net_rows(page, columns, table)
    # A page that is not full is the last one.
    is_last = 0 < len(rows) < limit or (offset == 0 and not rows)
    total = offset + len(rows) if is_last else changes.count()
    return make_page(window.after.root, window, name, columns, rows, total, offset)


def change_totals(store: Store, window: RunWindow, repo_id: str | None = None) -> ChangeCounts:
    """Count the rows that changed in a window, by table and repository."""
    names = tuple(name for name in feed_tables() if name in window.after.pins)
    counts = [ChangeCount(*row) for row in count_changes(store, window, repo_id).collect()] if names else []
    counts.sort(key=lambda each: (names.index(each.table), each.repo_id is None, each.repo_id or ""))
    return ChangeCounts(window.after.root, window.run_a, window.after.run_id, names, tuple(counts))


def _commit_rows(page: DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    # Python would get the time in the zone of the machine.
    milliseconds = F.unix_millis(COMMIT_TIMESTAMP).alias(COMMIT_TIMESTAMP)
    selected = page.select(*(milliseconds if name == COMMIT_TIMESTAMP else F.col(name) for name in columns))
    rows = [{name: plain_value(row[name]) for name in columns} for row in selected.collect()]
    for row in rows:
        row[COMMIT_TIMESTAMP] = EPOCH + timedelta(milliseconds=row[COMMIT_TIMESTAMP])
    return rows


def _net_rows(page: DataFrame, columns: tuple[str, ...], table: Table) -> list[dict[str, Any]]:
    rows = [{name: plain_value(row[name]) for name in columns} for row in page.select(*columns).collect()]
    for row in rows:
        if row[WAS] is not None:
            row[WAS] = former_values({name: row[WAS][name] for name in table.column_names}, row)
    return rows
