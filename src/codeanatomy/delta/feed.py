"""Read the change data feed of a table with Spark, and keep the cursors of its consumers.

A window is a closed range of versions (or times); a cursor is the last version a consumer has processed. All
arithmetic between the two is in this module:

    cursor 4, table at 7    ->  versions 5..7
    cursor 7, table at 7    ->  nothing new: an empty feed
    cursor 9, table at 7    ->  FeedLost: the table was recreated

Rows have the contract's columns plus Delta's `_change_type`, `_commit_version` and `_commit_timestamp`. A
feed is checked when it is opened, not when it is read: FeedLost is raised at once if files of the window were
vacuumed or log entries are missing. `delta.light_feed` reads the feed without a JVM.

Tests: `tests/spark/test_feed.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, structs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import plan_projection, project, spark_schema, stored_schema
from codeanatomy.delta.events import Committed, FeedRead
from codeanatomy.delta.log.jvm_log import DeltaLog, SnapshotInfo
from codeanatomy.delta.read.scan import scan, snapshot
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.commit import merge
from codeanatomy.errors import FeedLost, FeedOutOfRange, TableMissing, UsageError

Actions = Sequence[Mapping[str, Any]]
CURSORS = "cdf_cursors"
CHANGE_FIELDS = (
    T.StructField("_change_type", T.StringType()),
    T.StructField("_commit_version", T.LongType()),
    T.StructField("_commit_timestamp", T.TimestampType()),
)
CHANGE_COLUMNS = tuple(field.name for field in CHANGE_FIELDS)
READ_INSTEAD = "read the whole table at its newest version and compare, then set the cursor to that version"


class Window(Struct, frozen=True, omit_defaults=True):
    """A range of versions or times; both ends are inclusive, an open end is the newest version."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    # True: a window that starts after the newest version is empty instead of an error.
    allow_out_of_range: bool = False


class Cursor(Struct, frozen=True):
    """The last version of a table's feed that a consumer has processed for one repository."""

    dataset: str
    consumer: str
    repo_id: str
    last_version: int


def read_feed(store: Store, name: str, window: Window) -> DataFrame:
    """Read the changes of a table within a window."""
    info = snapshot(store, name)
    log = store.log(name)
    versions = resolve_window(window, log, info)
    stored = stored_schema(info)
    projection = plan_projection(store.table(name), stored)
    if not versions:
        empty = store.spark.createDataFrame([], T.StructType([*stored.fields, *CHANGE_FIELDS]))
        return project(store.table(name), empty, projection, *CHANGE_COLUMNS)
    _require_complete(name, log, versions)
    source = (
        store.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", versions.start)
        .option("endingVersion", versions[-1])
    )
    store.record(FeedRead(table=name, first_version=versions.start, last_version=versions[-1]))
    return project(store.table(name), source.load(store.location(name)), projection, *CHANGE_COLUMNS)


def follow_cursor(store: Store, cursor: Cursor) -> DataFrame:
    """Read the changes after a cursor; an empty frame if there are none."""
    newest = snapshot(store, cursor.dataset).version
    if cursor.last_version > newest:
        raise FeedLost(
            f"the cursor is at version {cursor.last_version} of {cursor.dataset}, but its newest version is "
            f"{newest}: the table was recreated",
            READ_INSTEAD,
        )
    window = Window(starting_version=cursor.last_version + 1, allow_out_of_range=True)
    return read_feed(store, cursor.dataset, window)


def resolve_window(window: Window, log: DeltaLog, info: SnapshotInfo) -> range:
    """Return the versions of a window; empty if `allow_out_of_range` and it starts after the newest."""
    start, end = window.starting_version, window.ending_version
    if (start is None) == (window.starting_timestamp is None):
        raise UsageError(
            "a window starts at a version or at a time",
            "give exactly one of starting_version and starting_timestamp",
        )
    if end is not None and window.ending_timestamp is not None:
        raise UsageError(
            "a window ends at a version or at a time",
            "give at most one of ending_version and ending_timestamp",
        )
    if window.starting_timestamp is not None:
        start = _first_at(log, window.starting_timestamp)
    if window.ending_timestamp is not None:
        end = log.snapshot(window.ending_timestamp).version
    if start is None or start < 0:
        raise UsageError(f"start version {start} is negative", "start at version 0 or later")
    if end is not None and end < start - 1:
        raise UsageError(f"start version {start} is after end version {end}", "end at the start or later")
    if start > info.version and not window.allow_out_of_range:
        raise FeedOutOfRange(
            f"start version {start} is after the newest version {info.version} of {info.location}",
            "wait for a newer version, or set allow_out_of_range to get an empty feed",
        )
    return range(start, min(info.version if end is None else end, info.version) + 1)


def read_cursor(store: Store, dataset: str, consumer: str, repo_id: str) -> Cursor | None:
    """Return the cursor of a consumer; None if it has never read."""
    if not store.log(CURSORS).exists():
        return None
    matches = (F.col("dataset") == dataset) & (F.col("consumer") == consumer) & (F.col("repo_id") == repo_id)
    row = scan(store, CURSORS).rows.where(matches).first()
    return None if row is None else Cursor(dataset, consumer, repo_id, int(row["last_version"]))


def move_cursor(store: Store, cursor: Cursor, commit: Commit) -> Committed:
    """Store the cursor of a consumer."""
    row = (cursor.dataset, cursor.consumer, cursor.repo_id, cursor.last_version, commit.run_id)
    rows = store.spark.createDataFrame([row], spark_schema(store.table(CURSORS)))
    # The position is part of the commit's identity: moving to another one is not a repetition.
    position = f"{cursor.dataset}/{cursor.consumer}/{cursor.repo_id}/{cursor.last_version}"
    return merge(store, CURSORS, rows, structs.replace(commit, plan_fingerprint=position))


def _first_at(log: DeltaLog, moment: datetime) -> int:
    """Return the first version committed at or after a moment."""
    try:
        version = log.snapshot(moment).version
    except TableMissing:
        return log.versions().start
    at = log.snapshot(version).timestamp_ms
    return version if at >= int(moment.timestamp() * 1000) else version + 1


def _require_complete(name: str, log: DeltaLog, versions: range) -> None:
    """Raise FeedLost if changes of a window were not recorded or have been deleted."""
    kept = log.versions()
    if versions.start < kept.start:
        raise FeedLost(
            f"the window starts at version {versions.start}, "
            f"but the log of {name} starts at version {kept.start}",
            READ_INSTEAD,
        )
    if log.snapshot(versions.start).properties.get("delta.enableChangeDataFeed") != "true":
        raise FeedLost(
            f"{name} did not record changes at version {versions.start}",
            f"enable change_data_feed for the table; until then {READ_INSTEAD}",
        )
    for version in versions:
        actions = list(log.actions(version))
        if _switches_off(actions):
            raise FeedLost(f"{name} stopped recording changes at version {version}", READ_INSTEAD)
        for path in _changed_files(actions):
            if not log.data_exists(path):
                raise FeedLost(f"a file of version {version} of {name} was vacuumed: {path}", READ_INSTEAD)


def _switches_off(actions: Actions) -> bool:
    """Return whether a commit disables the change feed."""
    metadata = [action["metaData"] for action in actions if "metaData" in action]
    return any(each["configuration"].get("delta.enableChangeDataFeed") != "true" for each in metadata)


def _changed_files(actions: Actions) -> Iterator[str]:
    """Yield the files that a feed reads for a version: its change files, else those it added and removed."""
    changes, data = [], []
    for action in actions:
        if cdc := action.get("cdc"):
            changes.append(cdc["path"])
        sides = (action.get(kind) for kind in ("add", "remove"))
        data += [side["path"] for side in sides if side and side.get("dataChange", True)]
    yield from changes or data
