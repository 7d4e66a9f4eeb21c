"""Run a statement over the views on Spark, with the same checks and answer as in `query.sql.light`.

    run_spark_sql(Lake.open("lake", spark=session), "SELECT count(*) FROM calls", limit=100, seconds=30)

In a session of your own use `SparkLake.sql`, which returns a DataFrame and has no time limit; this function
reads its first rows and stops when the time is over: what it runs has a tag, and nothing else is cancelled.
Tags are those of jobs in a classic session, and of operations in one of Spark Connect. The caller gets its
error at once; a task of a cross join checks for cancellation only between batches of its input, and occupies
its core until then.

Tests: `tests/unit/query/test_sql_command.py`, `tests/spark/test_sql_command.py`,
`tests/spark/test_connect.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from uuid import uuid4

from pyspark.sql import SparkSession

from codeanatomy.errors import SqlRefused, StorageFailure
from codeanatomy.query.answers import MAX_LIMIT
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.sql.answer import SqlAnswer, check_limits
from codeanatomy.query.sql.check import check
from codeanatomy.query.sql.diagnostics import Diagnostics
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.versions import is_connect

# Seconds between two attempts to cancel jobs that run too long.
AGAIN = 0.5


def run_spark_sql(lake: SparkLake, text: str, *, limit: int, seconds: float) -> SqlAnswer:
    """Run a statement and return its first rows; counting all of them would run it again."""
    check_limits(limit, seconds)
    checked = check(text)
    with _until(lake.spark, seconds) as late:
        try:
            collected = lake.run_checked(checked).limit(min(limit + 1, MAX_LIMIT)).collect()
            rows = [tuple(map(plain_value, row)) for row in collected]
        # Views are made here, too: an operation that is cancelled then is a StorageFailure.
        except (*ENGINE_ERRORS, SqlRefused, StorageFailure) as problem:
            problems = Diagnostics(text)
            if late.is_set():
                problems.add("time", f"no answer in {seconds:g} seconds", suggestion="select less")
            elif isinstance(problem, ENGINE_ERRORS):
                problems.add("engine", cause_of(problem))
            problems.refuse()
            raise
    total = None if len(rows) > limit else len(rows)
    # Checking whether the sources have changed takes milliseconds without Spark, and a few jobs with it.
    reader = LightReader(lake.snapshot)
    return SqlAnswer.of(checked, rows, limit=limit, total=total, sql=checked.spark_sql, reader=reader)


@contextmanager
def _until(spark: SparkSession, seconds: float) -> Iterator[Event]:
    """Cancel what this thread runs when the time is over, repeatedly: a job may just have started."""
    done, late, tag = Event(), Event(), f"codeanatomy-{uuid4().hex}"
    cancel: Callable[[str], object]
    if is_connect(spark):
        add, cancel, remove = spark.addTag, spark.interruptTag, spark.removeTag
    else:
        context = spark.sparkContext
        add, cancel, remove = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            late.set()
            # A server that has ended is reported to the thread that reads from it.
            with suppress(*ENGINE_ERRORS):
                cancel(tag)
            wait = AGAIN

    watcher = Thread(target=watch, daemon=True)
    add(tag)
    watcher.start()
    try:
        yield late
    finally:
        done.set()
        watcher.join()
        remove(tag)
