from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from delta import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Event, FeedRead
from codeanatomy.delta.feed import Window, read_feed
from codeanatomy.delta.read.open_table import open_table
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.errors import FeedLost, FeedOutOfRange, TableMissing, UsageError
from codeanatomy.spark.session import clone_session
from support.delta_log import delta_log
from support.item_table import ITEMS, file_id, frame, item, with_policy

MakeStore = Callable[..., Store]
FED = with_policy(enable_features=("change_data_feed",))


def changes(rows: DataFrame) -> list[tuple[int, str, int]]:
    return sorted((row._commit_version, row._change_type, row.bstart) for row in rows.collect())


@pytest.fixture(scope="module")
def fed(shared_store: MakeStore, spark: SparkSession) -> Store:
    """Version 0 inserts 1 and 2, version 1 swaps them for 3, version 2 updates 3; to be read only."""
    return three_changes(shared_store(FED), spark)


def three_changes(store: Store, spark: SparkSession) -> Store:
    append(store, "items", frame(spark, item(1), item(2)), Commit("r1"))
    replace_by_owner(store, "items", frame(spark, item(3)), [file_id(0)], Commit("r2"))
    spark.sql(f"UPDATE delta.`{store.location('items')}` SET weight = 8.0")
    return store


def test_a_window_of_versions(fed: Store, events: list[Event]) -> None:
    fed = replace(fed, record=events.append)
    assert changes(read_feed(fed, "items", Window(starting_version=0, ending_version=1))) == [
        (0, "insert", 1),
        (0, "insert", 2),
        (1, "delete", 1),
        (1, "delete", 2),
        (1, "insert", 3),
    ]
    newest = read_feed(fed, "items", Window(starting_version=2))
    assert changes(newest) == [(2, "update_postimage", 3), (2, "update_preimage", 3)]
    assert newest.columns[: len(ITEMS.columns)] == list(ITEMS.column_names)
    read = [event for event in events if isinstance(event, FeedRead)]
    assert [(event.first_version, event.last_version) for event in read] == [(0, 1), (2, 2)]


def test_a_window_of_times(fed: Store) -> None:
    def made(version: int) -> datetime:
        return datetime.fromtimestamp(open_table(fed, "items", version).info.timestamp_ms / 1000, UTC)

    second = read_feed(fed, "items", Window(starting_timestamp=made(1), ending_timestamp=made(1)))
    assert {row._commit_version for row in second.collect()} == {1}
    after = read_feed(fed, "items", Window(starting_timestamp=made(0) + timedelta(milliseconds=1)))
    assert {row._commit_version for row in after.collect()} == {1, 2}
    long_ago = read_feed(fed, "items", Window(starting_timestamp=made(0) - timedelta(days=9)))
    assert {row._commit_version for row in long_ago.collect()} == {0, 1, 2}


def test_beyond_the_newest_version(fed: Store) -> None:
    with pytest.raises(FeedOutOfRange, match="start version 9 is after the newest"):
        read_feed(fed, "items", Window(starting_version=9))
    empty = read_feed(fed, "items", Window(starting_version=9, allow_out_of_range=True))
    assert (empty.count(), empty.columns[-3:]) == (
        0,
        ["_change_type", "_commit_version", "_commit_timestamp"],
    )
    assert len(changes(read_feed(fed, "items", Window(starting_version=2, ending_version=99)))) == 2


@pytest.mark.parametrize(
    "window",
    [
        Window(),
        Window(starting_version=1, starting_timestamp=datetime.now(UTC)),
        Window(starting_version=1, ending_version=2, ending_timestamp=datetime.now(UTC)),
        Window(starting_version=3, ending_version=1),
        Window(starting_version=-1),
    ],
)
def test_windows_that_make_no_sense(fed: Store, window: Window) -> None:
    with pytest.raises(UsageError):
        read_feed(fed, "items", window)


def test_a_table_without_a_feed(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    with pytest.raises(TableMissing):
        read_feed(store, "items", Window(starting_version=0))
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    with pytest.raises(FeedLost, match="did not record changes at version 0"):
        read_feed(store, "items", Window(starting_version=0))


@pytest.mark.system
def test_a_feed_switched_on_later_starts_there(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    store = make_store(FED)
    done = append(store, "items", frame(spark, item(2)), Commit("r2"))
    with pytest.raises(FeedLost):
        read_feed(store, "items", Window(starting_version=0))
    assert changes(read_feed(store, "items", Window(starting_version=done.version))) == [
        (done.version, "insert", 2)
    ]


@pytest.mark.system
def test_a_feed_switched_off_in_between_is_lost(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(FED)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    address = f"delta.`{store.location('items')}`"
    spark.sql(f"ALTER TABLE {address} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    append(store, "items", frame(spark, item(2)), Commit("r2"))
    with pytest.raises(FeedLost, match="stopped recording changes at version 1"):
        read_feed(store, "items", Window(starting_version=0))


def test_a_vacuumed_window_is_lost_when_it_is_opened(make_store: MakeStore, spark: SparkSession) -> None:
    fed = make_store(FED)
    append(fed, "items", frame(spark, item(1)), Commit("r1"))
    replace_by_owner(fed, "items", frame(spark, item(2)), [file_id(0)], Commit("r2"))
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # Vacuum lists the table in as many tasks as this, by default 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    unsafe = clone_session(spark, settings)
    DeltaTable.forPath(unsafe, fed.location("items")).vacuum(0)
    with pytest.raises(FeedLost, match="was vacuumed") as caught:
        read_feed(fed, "items", Window(starting_version=0))
    assert "read the whole table" in caught.value.hint


@pytest.mark.system
def test_a_window_whose_log_is_gone(make_store: MakeStore, spark: SparkSession) -> None:
    fed = three_changes(make_store(FED), spark)
    log = Path(fed.location("items")) / "_delta_log"
    delta_log(fed, "items")._log.checkpoint()
    for name in ("00000000000000000000.json", "00000000000000000001.json"):
        (log / name).unlink()
    with pytest.raises(FeedLost, match="the log of items has no entry for version 0"):
        read_feed(fed, "items", Window(starting_version=0))
