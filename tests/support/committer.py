"""Commit to the table of items in a separate process; run by `tests/system/test_concurrency.py`.

    python committer.py swap LAKE NAME COUNT   COUNT commits of one row: every fourth is appended, the
                                               others swap an owner, which meets what others add meanwhile
    python committer.py slow LAKE NAME         append many rows, slowly enough to be killed

Prints one JSON line per commit: version, attempts, conflicts. Starts when LAKE/go exists.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import file_id
from codeanatomy.spark.session import open_session
from support.item_table import frame, item, with_policy

TABLE = with_policy(partition_by=())
SLOW_ROWS = 300_000


def many(spark: SparkSession) -> DataFrame:
    """Return so many rows that writing them takes a while; always the same ones."""
    return spark.range(SLOW_ROWS).select(
        F.concat(F.lit("item:"), F.sha2(F.col("id").cast("string"), 256)).alias("item_id"),
        F.lit("K").alias("kind"),
        F.concat(F.lit("file:"), F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 16)).alias(
            "file_id"
        ),
        F.col("id").alias("bstart"),
        (F.col("id") + 1).alias("bend"),
    )


def swap(store: Store, name: str, count: int) -> None:
    for number in range(count):
        owner = file_id(name, str(number))
        rows = frame(store.spark, item(number, file_id=owner, item_id=stable_id("item", name, number)))
        commit = Commit(name, sequence=number)
        done = (
            append(store, "items", rows, commit)
            if number % 4 == 3
            else replace_by_owner(store, "items", rows, [owner], commit)
        )
        print(json.dumps([done.version, done.attempts, done.conflicts]), flush=True)


def main() -> None:
    verb, lake, name, *rest = sys.argv[1:]
    # Two young JVMs on two cores: the optimizing compiler would cost more than it gives.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = open_session(RuntimeProfile(cores=1, driver_memory="1g", shuffle_partitions=2, spark=quick))
    store = Store(spark, lake, tables=(TABLE,))
    print(json.dumps("ready"), flush=True)
    while not (Path(lake) / "go").exists():
        time.sleep(0.02)
    if verb == "swap":
        swap(store, name, int(rest[0]))
    else:
        append(store, "items", many(spark), Commit(name))


if __name__ == "__main__":
    main()
