"""Frames that outlive their run: staged as Delta below the lake, by what they were made from.

    staged = stage(store, "relate", frame, "8f0c...")
    staged.rows, staged.hit, staged.size_bytes          # not computed again where it was staged before
    clear(store, "relate")

A staged frame is read at the version of its only commit, so half of one is never read: a run that dies while
it stages leaves a folder without a commit. Tests: `tests/spark/test_caching.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame

from codeanatomy.delta.log.jvm_log import DeltaLog
from codeanatomy.delta.store import Store

FOLDER = "staging"


@dataclass(frozen=True)
class Staged:
    """A frame that was staged, now or before."""

    rows: DataFrame
    # Below the lake.
    location: str
    hit: bool
    size_bytes: int


def stage(store: Store, name: str, frame: DataFrame, fingerprint: str) -> Staged:
    """The frame, from where it was staged; if it was not, it is computed and staged."""
    location = f"{FOLDER}/{name}/{fingerprint}"
    place = f"{store.root}/{location}"
    log = DeltaLog(store.spark, place)
    hit = log.exists()
    if not hit:
        frame.write.format("delta").mode("overwrite").save(place)
    rows = store.spark.read.format("delta").option("versionAsOf", 0).load(place)
    return Staged(rows, location, hit, log.size_bytes())


def cached_bytes(frame: DataFrame) -> int:
    """What a persisted frame takes in Spark's cache, once it was computed."""
    return int(frame._jdf.queryExecution().withCachedData().stats().sizeInBytes())


def clear_staged(store: Store, name: str) -> None:
    """Delete what was staged under a name."""
    jvm = cast("Any", store.spark._jvm)
    path = jvm.org.apache.hadoop.fs.Path(f"{store.root}/{FOLDER}/{name}")
    path.getFileSystem(store.spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)
