"""The sql command with Spark as its engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy.errors import SqlRefused, UsageError
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.spark import run_spark_sql

KINDS = "SELECT kind, count(*) AS amount FROM symbols WHERE repo_id = 'depot' GROUP BY kind ORDER BY kind"


def test_the_same_by_spark(spark: SparkSession, ask_lake: Path) -> None:
    lake = Lake.open(str(ask_lake), spark=spark)
    by_spark = run_spark_sql(lake, KINDS, limit=100, seconds=120)
    light = Lake.open(str(ask_lake)).sql(KINDS)
    assert structs.replace(by_spark, sql="") == structs.replace(light, sql="")
    few = run_spark_sql(lake, KINDS, limit=1, seconds=120)
    assert (len(few), few.total, few.cut, few.more) == (1, None, None, "--limit 10")
    with pytest.raises(UsageError):
        run_spark_sql(lake, KINDS, limit=-1, seconds=1)
    with pytest.raises(SqlRefused):
        run_spark_sql(lake, "SELECT reflect('java.lang.System', 'exit')", limit=1, seconds=1)
    # Only that is stopped: another job of the same context goes on, and the session is as it was.
    done: list[int] = []
    other = Thread(target=lambda: done.append(count_slowly(spark)))
    other.start()
    with pytest.raises(SqlRefused, match="no answer in"):
        run_spark_sql(lake, SLOW, limit=1, seconds=0.1)
    other.join()
    assert done == [2]
    assert list(spark.sparkContext.getJobTags()) == []


# For some seconds and no more: a task may not notice that it was cancelled, and keeps its core until it ends.
SLOW = "SELECT count(*) FROM nodes a CROSS JOIN nodes b CROSS JOIN (SELECT * FROM nodes LIMIT 9) c"


def count_slowly(spark: SparkSession) -> int:
    """A job that takes longer than the statement may."""

    def wait(numbers: Iterator[int]) -> Iterator[int]:
        time.sleep(1)
        return numbers

    return spark.sparkContext.parallelize([1, 2], 1).mapPartitions(wait).count()
