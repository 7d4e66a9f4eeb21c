"""Count the tasks of a Spark job while it runs, for progress.

    counter = TaskCounter(session, "run-7/relate")
    with counter:
        frame.toArrow()                # meanwhile, in another thread:
    counter.counts()                   # (3, 16): three of the sixteen tasks that are known have ended

Spark Connect calls a handler with the stages of a query. A classic session has no public source of progress,
so the status tracker of its JVM is read, by a tag of the job; without a JVM nothing is counted. Results never
depend on it.

Tests: `tests/spark/test_executors.py`, `tests/spark/test_connect.py`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Self, cast
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from codeanatomy.spark.versions import is_connect

# Each look at a JVM's tracker is a dozen calls.
POLL_SECONDS = 1.0


class TaskCounter:
    """The tasks of the jobs that a thread starts in a `with` block; they get a tag of the caller, too."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._spark = spark
        self._tags = (tag, f"codeanatomy-{uuid4().hex}")
        self._is_remote = is_connect(spark)
        self._seen = (0, 0)
        self._next = time.monotonic() + POLL_SECONDS

    def __enter__(self) -> Self:
        for tag in self._tags:
            self._spark.addTag(tag)
        if self._is_remote:
            self._spark.registerProgressHandler(cast("Any", self._handle))
        return self

    def __exit__(self, *_: object) -> None:
        for tag in self._tags:
            self._spark.removeTag(tag)
        if self._is_remote:
            self._spark.removeProgressHandler(cast("Any", self._handle))

    def counts(self) -> tuple[int, int]:
        """Return the tasks that have ended, and those that are known."""
        if not self._is_remote and time.monotonic() >= self._next:
            # A JVM that ends is reported by the job; another version of Spark may lack the tracker.
            with suppress(Py4JError, OSError, AttributeError, TypeError):
                self._seen = self._of_tracker()
            self._next = time.monotonic() + POLL_SECONDS
        return self._seen

    def _handle(self, stages: Any, **_: Any) -> None:
        known = [stage for stage in stages or () if stage.num_tasks]
        if known:
            done = sum(stage.num_completed_tasks for stage in known)
            self._seen = (done, sum(stage.num_tasks for stage in known))

    def _of_tracker(self) -> tuple[int, int]:
        context: Any = self._spark.sparkContext._jsc.sc()
        tracker = context.statusTracker()
        done = known = 0
        for job in tracker.getActiveJobIds():
            if self._tags[1] not in context.statusStore().job(job).jobTags().mkString(","):
                continue
            info = tracker.getJobInfo(job)
            for number in info.get().stageIds() if info.isDefined() else ():
                stage = tracker.getStageInfo(number)
                if stage.isDefined():
                    done += stage.get().numCompletedTasks()
                    known += stage.get().numTasks()
        return done, known
