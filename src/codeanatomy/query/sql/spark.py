"""A statement over the views, answered by Spark: the same question and frame as in `query.sql.light`.

    run_spark_sql(Lake.open("lake", spark=session), "SELECT count(*) FROM calls", limit=100, seconds=30)

Who has a session of their own asks `SparkLake.sql`, which is a DataFrame; this reads the first rows of it and
stops when the time is over. Tests: `tests/test_sql_command.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from codeanatomy.query.lanes.spark_lake import SparkLake
from codeanatomy.query.sql.diagnostics import Complaints
from codeanatomy.query.sql.light import SqlAnswer, check
from codeanatomy.storage.deltalog import cause_of

# Seconds between two attempts to stop what runs too long.
AGAIN = 0.5


def run_spark_sql(lake: SparkLake, text: str, *, limit: int, seconds: float) -> SqlAnswer:
    """The first rows of a statement's answer; how many there are is not counted, for that runs it again."""
    rows = lake.sql(text).limit(limit + 1)
    with _until(lake.spark, seconds) as late:
        try:
            found = rows.collect()
        except (PySparkException, Py4JError) as problem:
            complaints = Complaints(text)
            if late.is_set():
                complaints.add("time", f"no answer in {seconds:g} seconds", suggestion="ask for less")
            else:
                complaints.add("engine", cause_of(problem))
            complaints.refuse()
            raise
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


@contextmanager
def _until(spark: SparkSession, seconds: float) -> Iterator[Event]:
    """The jobs of a session are cancelled when the time is over, again and again: one may just have begun."""
    done, late = Event(), Event()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            late.set()
            spark.sparkContext.cancelAllJobs()
            wait = AGAIN

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield late
    finally:
        done.set()
        watcher.join()
