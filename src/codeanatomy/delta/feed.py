"""Read the change data feed of a table with Spark.

A window is a closed range of versions (or times); an open end is the newest version:

    read_feed(store, "items", Window(starting_version=5))       # the table is at 7: versions 5 to 7
    read_feed(store, "items", Window(starting_version=8))       # FeedOutOfRange, or with allow_out_of_range
                                                                # an empty feed

Rows have the contract's columns plus Delta's `_change_type`, `_commit_version` and `_commit_timestamp`. A
feed is checked when it is opened, not when it is read: FeedLost is raised at once if files of the window were
vacuumed or log entries are missing. `stream_feed` follows the feed from a version on. `delta.light_feed`
reads the feed without a JVM; the steps of a build keep their positions in feeds in `lake.cursors`.

Tests: `tests/spark/test_feed.py`, `tests/spark/test_light_feed.py`.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.delta.contract import plan_projection, project, stored_schema
from codeanatomy.delta.events import FeedRead
from codeanatomy.delta.light_feed import existing_versions, require_complete
from codeanatomy.delta.log.replay import list_log
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.read.open_table import commit_times, open_table, resolve_pin
from codeanatomy.delta.store import Store
from codeanatomy.errors import FeedOutOfRange, TableMissing, UsageError

CHANGE_FIELDS = (
    T.StructField("_change_type", T.StringType()),
    T.StructField("_commit_version", T.LongType()),
    T.StructField("_commit_timestamp", T.TimestampType()),
)
CHANGE_COLUMNS = tuple(field.name for field in CHANGE_FIELDS)


class Window(Struct, frozen=True, omit_defaults=True):
    """A range of versions or times; both ends are inclusive, an open end is the newest version."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    # True: a window that starts after the newest version is empty instead of an error.
    allow_out_of_range: bool = False


def read_feed(store: Store, name: str, window: Window) -> DataFrame:
    """Read the changes of a table within a window."""
    info = open_table(store, name).info
    versions = resolve_window(window, info)
    stored = stored_schema(info)
    projection = plan_projection(store.table(name), stored)
    if not versions:
        empty = store.spark.createDataFrame([], T.StructType([*stored.fields, *CHANGE_FIELDS]))
        return project(store.table(name), empty, projection, *CHANGE_COLUMNS)
    require_complete(info.location, store.table(name), versions)
    options = {"startingVersion": versions.start, "endingVersion": versions[-1]}
    source = store.spark.read.format("delta").option("readChangeFeed", "true").options(**options)
    store.record(FeedRead(table=name, first_version=versions.start, last_version=versions[-1]))
    return project(store.table(name), source.load(store.location(name)), projection, *CHANGE_COLUMNS)


def stream_feed(store: Store, name: str, starting_version: int) -> DataFrame:
    """Return the changes of a table from a version on as a streaming DataFrame.

    Its batches have the rows of each commit once, also of commits that are made later: the start may be the
    version after the newest. The position is in the checkpoint of the query, which has precedence.
    """
    info = open_table(store, name).info
    if starting_version > info.version + 1:
        raise FeedOutOfRange(
            f"start version {starting_version} is after the next version {info.version + 1} of {name}",
            "start at the next version or before",
        )
    # Delta refuses to start at a version that is not there yet.
    existing = min(starting_version, info.version)
    require_complete(info.location, store.table(name), range(existing, info.version + 1))
    projection = plan_projection(store.table(name), stored_schema(info))
    options = {"readChangeFeed": "true", "startingVersion": str(existing)}
    source = store.spark.readStream.format("delta").options(**options)
    rows = project(store.table(name), source.load(store.location(name)), projection, *CHANGE_COLUMNS)
    return rows.where(F.col("_commit_version") >= starting_version)


def resolve_window(window: Window, info: SnapshotInfo) -> range:
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
        start = _first_at(info.location, window.starting_timestamp)
    if window.ending_timestamp is not None:
        end = resolve_pin(info.location, list_log(info.location), window.ending_timestamp)
    first = start or 0
    # An open end may be before a start that is out of range.
    last = max(info.version, first - 1) if end is None else end
    return existing_versions(
        info.location, info.version, first, last, allow_out_of_range=window.allow_out_of_range
    )


def _first_at(location: str, moment: datetime) -> int:
    """Return the first version committed at or after a moment."""
    listing = list_log(location)
    try:
        version = resolve_pin(location, listing, moment)
    except TableMissing:
        return min(listing.entries)
    at = commit_times(listing)[version]
    return version if at >= int(moment.timestamp() * 1000) else version + 1
