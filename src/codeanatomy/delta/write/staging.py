"""Stage DataFrames as Delta tables in the lake for later runs, keyed by a fingerprint of their inputs.

    staged = stage(store, "relate", frame, "8f0c...")
    staged.rows, staged.hit, staged.size_bytes          # hit: it was staged before and is not computed again
    clear_staged(store, "relate")

A staged frame is read at the version of its only commit, so a partial one is never read: a run that dies
while staging leaves a folder without a commit. Tests: `tests/spark/test_caching.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame

from codeanatomy.delta.log.replay import list_log, replay_log
from codeanatomy.delta.store import Store

FOLDER = "staging"


@dataclass(frozen=True)
class Staged:
    """A staged frame."""

    rows: DataFrame
    # Relative to the root of the lake.
    location: str
    # True: it was staged before.
    hit: bool
    size_bytes: int


def stage(store: Store, name: str, frame: DataFrame, fingerprint: str) -> Staged:
    """Return the staged frame; compute and stage it first if it is not there."""
    location = f"{FOLDER}/{name}/{fingerprint}"
    path = f"{store.root}/{location}"
    hit = list_log(path).newest >= 0
    if not hit:
        frame.write.format("delta").mode("overwrite").save(path)
    rows = store.spark.read.format("delta").option("versionAsOf", 0).load(path)
    return Staged(rows, location, hit, sum(add.size for add in replay_log(path, 0).adds.values()))


def cached_bytes(frame: DataFrame) -> int:
    """Return the size of a persisted, computed frame in Spark's cache."""
    return int(frame._jdf.queryExecution().withCachedData().stats().sizeInBytes())


def clear_staged(store: Store, name: str) -> None:
    """Delete all frames staged under a name."""
    jvm = cast("Any", store.spark._jvm)
    path = jvm.org.apache.hadoop.fs.Path(f"{store.root}/{FOLDER}/{name}")
    path.getFileSystem(store.spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)
