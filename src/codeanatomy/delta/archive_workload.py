"""Run every kind of read and write once, so that the JVM's class archive contains their classes.

`spark.class_archive` starts this module as a program with the JVM option that dumps the archive:

    python -m codeanatomy.delta.archive_workload "-XX:ArchiveClassesAtExit=/cache/x.jsa" /cache/.train-1

Tests: `tests/unit/spark/test_class_archive.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.spark.metrics import describe_frame
from codeanatomy.spark.session import open_session, set_pass_settings


def _run_once(options: str, folder: Path) -> None:
    """Run a small session; every class that it loads goes into the archive."""
    extra = {"spark.driver.extraJavaOptions": options, "spark.sql.warehouse.dir": (folder / "wh").as_uri()}
    spark = open_session(RuntimeProfile(cores=1, shuffle_partitions=1, spark=extra))
    _run_passes(set_pass_settings(spark.newSession()))
    store, name = Store(spark, str(folder / "lake")), "cdf_cursors"
    columns = spark_schema(store.table(name))
    rows = spark.createDataFrame([("table", "consumer", "repo", 1, "run", "rules")], columns)
    append(store, name, rows, Commit("first"))
    append(store, name, rows.mapInArrow(_identity, columns), Commit("second"))
    replace_by_owner(store, name, rows, ["repo"], Commit("third"), by="repo_id")
    scan(store, name).rows.orderBy("last_version").groupBy("dataset").count().collect()
    _stop_jvm(spark)


def _run_passes(spark: SparkSession) -> None:
    """Run frames like those of a build (`pipeline.executors.spark_executor`)."""
    tasks = spark.createDataFrame(pa.table({"number": pa.array([0, 1], pa.int32()), "task": [b"a", b"b"]}))
    ddl = "number int, task binary"
    first = tasks.repartitionById(2, "number").mapInArrow(_identity, ddl).persist(StorageLevel.DISK_ONLY)
    first.where(F.col("number").isin(0)).toArrow()
    kept = [first]
    for exchanged in (first.union(first).coalesce(1), first.repartition(2, "number")):
        ordered = exchanged.where(F.col("number").isin(0, 1)).sortWithinPartitions("number", "task")
        kept.append(ordered.mapInArrow(_identity, ddl).persist(StorageLevel.DISK_ONLY))
        kept[-1].where(F.col("number").isin(0)).toArrow()
    for frame in kept:
        describe_frame(frame)
        frame.unpersist()


def _stop_jvm(spark: SparkSession) -> None:
    """Stop the session and wait for its JVM, which writes the archive on exit."""
    gateway = spark.sparkContext._gateway  # PySpark has no public name for its JVM
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        if gateway.proc.wait():
            raise SystemExit("the JVM exited with an error while writing the class archive")


def _identity(batches: Iterator[object]) -> Iterator[object]:
    yield from batches


if __name__ == "__main__":
    _run_once(sys.argv[1], Path(sys.argv[2]))
