"""Read a lake with the public interface of a Spark session only: Spark Connect, and versions not tested.

    store = open_store(Snapshot.open("lake"), session)       # a Store if the session's internals were tested
    scan(store, "cpg_nodes", pin=3).rows

A session of Spark Connect is a client of a server with the JVM. Versions, gates, statistics and the log of a
table are read in this process, from the files of the lake; rows are read by the server, with `spark.read` of
Parquet files, or of Delta where only Delta can read them. So both have to reach the lake at the same path or
URI, which is checked when it is opened.

Tests: `tests/spark/test_connect.py`.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import SparkSession, is_remote

from codeanatomy.delta.read.scan import stored_columns
from codeanatomy.delta.store import Store
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.versions import has_internals, is_connect


class PublicStore(Store):
    """A store that is only read, with the public interface of its session."""

    uses_internals: ClassVar[bool] = False


def open_store(snapshot: Snapshot, spark: SparkSession) -> Store:
    """Return the store of a lake in a caller's session.

    Raise EnvironmentProblem if the session cannot read it.
    """
    if has_internals(spark):
        return Store(spark, snapshot.root)
    store = PublicStore(spark, snapshot.root)
    if is_connect(spark):
        _require_server(store, snapshot)
    return store


def _require_server(store: PublicStore, snapshot: Snapshot) -> None:
    """Raise EnvironmentProblem if the server of a session cannot open a table of the lake."""
    if not is_remote():
        raise EnvironmentProblem(
            "the functions of PySpark in this process are those of a classic session",
            "start the session with SparkSession.builder.remote(...), in a process without a classic session",
        )
    name, pin = next(iter(snapshot.pins.items()))
    try:
        stored_columns(store, name, pin.version)
    except ENGINE_ERRORS as problem:
        raise EnvironmentProblem(
            f"the server of the Spark Connect session cannot open {name} of the lake {snapshot.root}: "
            f"{cause_of(problem)}",
            "the server needs Delta on its class path, and the lake at the same path or URI as this process",
        ) from problem
