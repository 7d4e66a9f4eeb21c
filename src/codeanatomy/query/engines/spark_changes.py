"""Changes of tables between two runs, as DataFrames of the caller's Spark session.

    net_changes(store, window, "repo_files_v1").where("change = 'removed'").select("path")
    commit_changes(store, window, "repo_files_v1")      # Delta's readChangeFeed, of the window's versions

The rows are those of `query.diff.table_changes`. `was` is the whole row before, of changed rows only. Maps
cannot be grouped by in Spark, so rows are compared as JSON texts.

Tests: `tests/spark/test_changes.py`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.feed import Window, read_feed, stream_feed
from codeanatomy.delta.light_feed import CHANGE_TYPE, DELETIONS, REPOSITORY
from codeanatomy.delta.store import Store
from codeanatomy.errors import FeedLost
from codeanatomy.query.diff.change_windows import READ_INSTEAD, RunWindow, feed_tables, require_feed
from codeanatomy.query.diff.table_changes import CHANGE, WAS, key_columns


def commit_changes(store: Store, window: RunWindow, name: str, repo_id: str | None = None) -> DataFrame:
    """Return every row that a commit of the window inserted or deleted."""
    window.check_repository(repo_id)
    require_feed(window, name)
    versions = window.versions(name)
    wanted = Window(
        starting_version=versions.start,
        ending_version=versions.stop - 1,
        # A table that was not written in the window.
        allow_out_of_range=True,
    )
    try:
        rows = read_feed(store, name, wanted)
    except FeedLost as lost:
        raise FeedLost(lost.message, READ_INSTEAD) from lost
    return rows if repo_id is None else rows.where(F.col(REPOSITORY) == repo_id)


def net_changes(store: Store, window: RunWindow, name: str, repo_id: str | None = None) -> DataFrame:
    """Return the net effect of the window: one row for each key that was inserted, removed or changed."""
    table = store.table(name)
    keys = list(key_columns(table))
    contents = (
        commit_changes(store, window, name, repo_id)
        .select(
            *(F.col(key) for key in keys),
            F.struct(*table.column_names).alias("row"),
            F.when(F.col(CHANGE_TYPE).isin(*DELETIONS), -1).otherwise(1).alias("copies"),
        )
        .withColumn("content", F.to_json(_comparable(table), {"ignoreNullFields": "false"}))
        .groupBy(*keys, "content")
        .agg(F.sum("copies").alias("copies"), F.first("row").alias("row"))
        .where("copies <> 0")
    )
    sides = contents.groupBy(*keys).agg(
        F.first(F.when(F.col("copies") < 0, F.col("row")), ignorenulls=True).alias("before"),
        F.first(F.when(F.col("copies") > 0, F.col("row")), ignorenulls=True).alias("after"),
    )
    before, after = F.col("before"), F.col("after")
    change = (
        F.when(before.isNull(), "inserted").when(after.isNull(), "removed").otherwise("changed").alias(CHANGE)
    )
    return sides.select(
        change,
        F.coalesce(after, before).alias("row"),
        F.when(after.isNotNull(), before).alias(WAS),
    ).select(CHANGE, *(F.col(f"row.{column}").alias(column) for column in table.column_names), WAS)


def count_changes(store: Store, window: RunWindow, repo_id: str | None = None) -> DataFrame:
    """Return the number of inserted, removed and changed rows, by table and repository."""
    window.check_repository(repo_id)
    parts = [
        net_changes(store, window, name, repo_id).select(
            F.lit(name).alias("table"), REPOSITORY, F.col(CHANGE)
        )
        for name in feed_tables()
        if name in window.after.pins
    ]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    counts = [
        F.count_if(F.col(CHANGE) == change).alias(change) for change in ("inserted", "removed", "changed")
    ]
    return rows.groupBy("table", REPOSITORY).agg(*counts)


def stream_changes(store: Store, window: RunWindow, name: str, repo_id: str | None = None) -> DataFrame:
    """Return every row that a commit after the start of the window inserts or deletes, as a stream."""
    window.check_repository(repo_id)
    require_feed(window, name)
    try:
        rows = stream_feed(store, name, window.versions(name).start)
    except FeedLost as lost:
        raise FeedLost(lost.message, READ_INSTEAD) from lost
    return rows if repo_id is None else rows.where(F.col(REPOSITORY) == repo_id)


def _comparable(table: Table) -> Column:
    """Return the values of a row by which it is compared; maps as entries in the order of their keys."""
    return F.struct(
        *(
            F.array_sort(F.map_entries(f"row.{column.name}")).alias(column.name)
            if column.type.startswith("map<")
            else F.col(f"row.{column.name}")
            for column in table.columns
        )
    )
