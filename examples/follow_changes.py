r"""Keep a table of your own up to date with a lake: after each build, apply only what has changed.

    spark-submit \
        --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        examples/follow_changes.py lake big_files

The table has the files of all repositories of 10 kB or more. There are two ways to follow the lake:

- `follow_runs` applies the net effect of all runs that were published since the last call, once per call.
  It keeps the id of the last run in a property of the table. MERGE with the same changes twice gives the same
  table, so a call that was killed before it has written the property may be repeated.
- `follow_stream` applies every commit, in the order of commits, with a structured stream. It also sees
  commits of a run that is not published yet; if that run fails, later commits undo them. Spark keeps the
  position in the checkpoint folder.

Use either of the two for a table, not both.
"""

from __future__ import annotations

import sys
from functools import partial

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from codeanatomy.errors import CodeAnatomyError, FeedLost
from codeanatomy.query.lake import Lake

SOURCE = "repo_files_v1"
KEY = "file_id"
COLUMNS = ("file_id", "repo_id", "path", "size_bytes")
MIN_BYTES = 10_000
# The property of our table with the last run that it includes.
LAST_RUN = "follow.lastRun"
# Everything, if no run was applied yet.
BEGINNING = "1970-01-01"


def follow_runs(spark: SparkSession, root: str, target: str, min_bytes: int = MIN_BYTES) -> str:
    """Apply what was published since the last call, and return the newest run."""
    lake = Lake.open(root, spark=spark)
    table = open_target(spark, target)
    (detail,) = table.detail().collect()
    last_run = detail["properties"].get(LAST_RUN, BEGINNING)
    try:
        changes = lake.changes(SOURCE, last_run, allow_out_of_range=True)
    except FeedLost:
        # Files or log entries of these changes were removed by maintenance: start anew.
        rows = lake.table(SOURCE).where(F.col("size_bytes") >= min_bytes).select(*COLUMNS)
        rows.write.format("delta").mode("overwrite").save(target)
    else:
        is_wanted = (F.col("change") != "removed") & (F.col("size_bytes") >= min_bytes)
        apply(table, changes.select(*COLUMNS, is_wanted.alias("wanted")))
    run_id = lake.snapshot.run_id
    spark.sql(f"ALTER TABLE delta.`{target}` SET TBLPROPERTIES ('{LAST_RUN}' = '{run_id}')")
    return run_id


def follow_stream(
    spark: SparkSession, root: str, target: str, checkpoint: str, min_bytes: int = MIN_BYTES
) -> None:
    """Apply all commits since the last call; without the trigger, the stream would go on with later ones."""
    open_target(spark, target)
    rows = Lake.open(root, spark=spark).change_stream(SOURCE, BEGINNING)
    query = (
        rows.writeStream.foreachBatch(partial(apply_commits, target, min_bytes))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def apply_commits(target: str, min_bytes: int, rows: DataFrame, _: int) -> None:
    """Apply a batch: of each file, the last change of the last commit."""
    is_there = F.col("_change_type").isin("insert", "update_postimage")
    # In a commit, the row that is there afterwards comes after the one that was deleted.
    newest_first = Window.partitionBy(KEY).orderBy(F.desc("_commit_version"), F.desc(is_there))
    last = rows.withColumn("age", F.row_number().over(newest_first)).where("age = 1")
    is_wanted = is_there & (F.col("size_bytes") >= min_bytes)
    apply(DeltaTable.forPath(rows.sparkSession, target), last.select(*COLUMNS, is_wanted.alias("wanted")))


def apply(table: DeltaTable, changes: DataFrame) -> None:
    """Insert, update or delete the rows of our table."""
    values: dict[str, str | Column] = {name: F.col(f"new.{name}") for name in COLUMNS}
    (
        table.alias("old")
        .merge(changes.alias("new"), f"old.{KEY} = new.{KEY}")
        .whenMatchedDelete("NOT new.wanted")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert("new.wanted", values=values)
        .execute()
    )


def open_target(spark: SparkSession, target: str) -> DeltaTable:
    """Open our table, which is created by the first call."""
    columns = StructType()
    for name in COLUMNS:
        columns.add(name, "long" if name == "size_bytes" else "string")
    return DeltaTable.createIfNotExists(spark).location(target).addColumns(columns).execute()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: follow_changes.py LAKE TABLE")
    session = SparkSession.builder.appName("follow").getOrCreate()
    try:
        print(f"up to date with run {follow_runs(session, sys.argv[1], sys.argv[2])}")
    except CodeAnatomyError as problem:
        sys.exit(str(problem))
    finally:
        session.stop()
