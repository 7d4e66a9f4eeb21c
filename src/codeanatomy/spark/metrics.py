"""What a step has cost, from what Spark keeps of it: jobs, tasks, spill, skew, figures of each operator.

    with tagged(spark, "run-7/relate"):
        frame.count()
    operator_metrics(frame)[0]            # OperatorMetric(0, "MapInArrow", "output_rows", 18)
    measured(spark, "run-7/relate")       # Measures(jobs=9, tasks=30, spilled_bytes=0, skew=1.2)

Jobs are found by a tag that they inherit from the thread that starts them; it also is their description and
their pool, in which independent steps share the cores. A thread that a step starts itself has to take it
over: `pyspark.util.inheritable_thread_target(spark)`.

Jobs and stages are read from Spark's status store, which is there without the UI too. It keeps the figures
of operators as texts for people, such as `12.3 MiB (1.0 MiB, ...)`; the exact ones are in the operators, so
these are read from the plan of the frame, while it is cached. A call to the JVM takes a tenth of a
millisecond, so the figures of an operator are fetched as one text; those that are zero are left out.

Tests: `tests/spark/test_metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.spark.plans import operators

# Of the thread: what Spark shows of a job, and with whom it shares the cores.
DESCRIPTION = "spark.job.description"
POOL = "spark.scheduler.pool"
# How long is waited until Spark has taken down what has happened.
WAIT_MS = 2000

ROWS = "output_rows"
FIGURE = re.compile(r"(\w+) -> SQLMetric\(id: \d+, name: Some\((.*?)\), value: (-?\d+)\)")
UNITS = {"size": "bytes", "timing": "ms", "nsTiming": "ns", "sum": ""}


class OperatorMetric(Struct, frozen=True):
    """A figure of an operator."""

    # Line of the physical plan, from 0.
    operator_no: int
    operator: str
    # With its unit, if it is no count.
    metric: str
    value: int


class Measures(Struct, frozen=True):
    """What the jobs with a tag have cost."""

    jobs: int
    # That ran to their end.
    tasks: int
    # Written to disk because memory did not hold them.
    spilled_bytes: int
    # Longest task over the median, in the stage that took longest; none if no task ran.
    skew: float | None


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Tag the jobs that this thread starts."""
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in (DESCRIPTION, POOL)}
    for name in before:
        context.setLocalProperty(name, tag)
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)
        for name, value in before.items():
            # No value takes a property away, which the annotation does not say.
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


def measured(spark: SparkSession, tag: str) -> Measures:
    """What the jobs with a tag have cost."""
    context = spark.sparkContext._jsc.sc()
    # Incomplete figures are better than a build that waits for them.
    with suppress(Py4JJavaError):
        context.listenerBus().waitUntilEmpty(WAIT_MS)
    store = context.statusStore()
    jobs = [store.job(number) for number in context.statusTracker().getJobIdsForTag(tag)]
    numbers = {int(each) for job in jobs for each in re.findall(r"\d+", job.stageIds().toString())}
    stages = [_stage(store, number) for number in sorted(numbers)]
    ran = [stage for stage in stages if stage is not None and stage.numCompleteTasks()]
    return Measures(
        jobs=len(jobs),
        tasks=sum(stage.numCompleteTasks() for stage in ran),
        spilled_bytes=sum(stage.diskBytesSpilled() for stage in ran),
        skew=_skew(spark, store, ran),
    )


def operator_metrics(frame: DataFrame) -> tuple[OperatorMetric, ...]:
    """The figures of the operators that have computed a frame, which must be persisted still."""
    return tuple(_figures(frame))


def _stage(store: Any, number: int) -> Any:
    """The last attempt of a stage; none if it is not kept any more, of thousands."""
    try:
        return store.lastStageAttempt(number)
    except Py4JJavaError:
        return None


def _skew(spark: SparkSession, store: Any, stages: list[Any]) -> float | None:
    timed = [(_ms(stage), stage) for stage in stages if stage.completionTime().isDefined()]
    if not timed:
        return None
    _, longest = max(timed, key=lambda pair: pair[0])
    gateway: Any = spark.sparkContext._gateway
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.5, 1.0
    summary = store.taskSummary(longest.stageId(), longest.attemptId(), quantiles)
    if summary.isEmpty():
        return None
    median, most = (summary.get().duration().apply(each) for each in range(2))
    # Times are whole milliseconds.
    return float(round(max(most, 1) / max(median, 1), 3))


def _ms(stage: Any) -> int:
    return int(stage.completionTime().get().getTime() - stage.submissionTime().get().getTime())


def _figures(frame: DataFrame) -> Iterator[OperatorMetric]:
    # By the key of a figure: its type is asked for once. Averages have no unit.
    units: dict[str, str | None] = {}
    for number, operator in enumerate(operators(frame)):
        for node in operator.nodes:
            metrics = node.metrics()
            for key, name, value in FIGURE.findall(metrics.toString()):
                if key not in units:
                    units[key] = UNITS.get(metrics.apply(key).metricType())
                metric = metric_name(name, units[key])
                if metric and (int(value) or metric == ROWS):
                    yield OperatorMetric(number, operator.name, metric, int(value))


def metric_name(name: str, unit: str | None) -> str | None:
    """Spark's name of a figure as one word with its unit; none of averages, which do not add up.

    >>> metric_name("number of output rows", ""), metric_name("spill size", "bytes")
    ('output_rows', 'spill_size_bytes')
    """
    if unit is None:
        return None
    word = re.sub(r"\W+", "_", name.lower().removeprefix("number of ")).strip("_")
    return word if not unit or unit in word.split("_") else f"{word}_{unit}"
