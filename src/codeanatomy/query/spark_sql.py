"""A statement over the views, answered by Spark: the same question and the same frame as in `query.sql`.

    run_spark_sql(Lake.open("lake", spark=session), "SELECT count(*) FROM calls", limit=100, seconds=30)

Who has a session of their own asks `SparkLake.sql`, which is a DataFrame; this reads the first rows of it and
stops when the time is over. Tests: `tests/test_sql_command.py`.
"""

from __future__ import annotations

from threading import Event, Timer

from pyspark.errors import PySparkException

from codeanatomy.errors import StorageFailure
from codeanatomy.query.spark_lake import SparkLake
from codeanatomy.query.sql import SqlAnswer, check
from codeanatomy.storage.deltalog import cause_of


def run_spark_sql(lake: SparkLake, text: str, *, limit: int, seconds: float) -> SqlAnswer:
    """The first rows of a statement's answer; how many there are is not counted, for that runs it again."""
    rows = lake.sql(text).limit(limit + 1)
    late = Event()

    def stop() -> None:
        late.set()
        lake.spark.sparkContext.cancelAllJobs()

    timer = Timer(seconds, stop)
    timer.start()
    try:
        found = rows.collect()
    except PySparkException as problem:
        if late.is_set():
            raise StorageFailure(
                f"no answer in {seconds:g} seconds", "ask for less, or give it more --seconds"
            ) from problem
        raise StorageFailure(f"Spark has failed: {cause_of(problem)}", "ask in another way") from problem
    finally:
        timer.cancel()
    checked = check(text)
    return SqlAnswer(
        checked.columns,
        tuple(dict(zip(checked.columns, row, strict=True)) for row in found[:limit]),
        None if len(found) > limit else len(found),
        len(found) > limit,
        checked.views,
        lake.snapshot.run_id,
        checked.spark_sql,
    )
