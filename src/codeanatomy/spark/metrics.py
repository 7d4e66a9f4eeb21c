"""Collect the metrics of Spark jobs: tasks, spill, skew, and the metrics of each operator.

    spark.addTag("run-7/relate")
    frame.persist().count()
    operator_metrics(frame)[0]            # OperatorMetric(0, "MapInArrow", "output_rows", 18)
    job_metrics(spark, "run-7/relate")    # JobMetrics(jobs=9, tasks=30, spilled_bytes=0, skew=1.2)

Jobs are identified by a tag of the thread that starts them (`spark.task_counter`).

Jobs and stages are read from Spark's status store, which exists without the UI too. It keeps the metrics of
operators as formatted text only, such as `12.3 MiB (1.0 MiB, ...)`; the exact values are in the operators, so
these are read from the plan of the frame, while it is cached. A call to the JVM takes a tenth of a
millisecond, so the metrics of an operator are fetched as one text; those that are zero are left out.

Tests: `tests/spark/test_metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.spark.plans import PlanTexts, operators, plan_texts

# Timeout for pending events to reach the status store.
WAIT_MS = 2000

ROWS = "output_rows"
METRIC = re.compile(r"(\w+) -> SQLMetric\(id: \d+, name: Some\((.*?)\), value: (-?\d+)\)")
UNITS = {"size": "bytes", "timing": "ms", "nsTiming": "ns", "sum": ""}


class OperatorMetric(Struct, frozen=True):
    """A metric of an operator."""

    # Line of the physical plan, from 0.
    operator_no: int
    operator: str
    # Name with its unit, if it is no count.
    metric: str
    value: int


class JobMetrics(Struct, frozen=True):
    """Metrics of the jobs with a tag."""

    jobs: int
    # Completed tasks.
    tasks: int
    # Bytes written to disk for lack of memory.
    spilled_bytes: int
    # Longest task over the median, in the longest stage; None if no task ran.
    skew: float | None


def job_metrics(spark: SparkSession, tag: str) -> JobMetrics:
    """Return the metrics of the jobs with a tag."""
    context = spark.sparkContext._jsc.sc()
    # Incomplete metrics are better than a build that waits for them.
    with suppress(Py4JJavaError):
        context.listenerBus().waitUntilEmpty(WAIT_MS)
    store = context.statusStore()
    listed = store.jobsList(None)
    known = (listed.apply(number) for number in range(listed.size()))
    # Spark stores a tag of a session with a prefix of its own.
    jobs = [job for job in known if f"-{tag}," in f"{job.jobTags().mkString(',')},"]
    numbers = {int(each) for job in jobs for each in re.findall(r"\d+", job.stageIds().toString())}
    stages = [_stage(store, number) for number in sorted(numbers)]
    ran = [stage for stage in stages if stage is not None and stage.numCompleteTasks()]
    return JobMetrics(
        jobs=len(jobs),
        tasks=sum(stage.numCompleteTasks() for stage in ran),
        spilled_bytes=sum(stage.diskBytesSpilled() for stage in ran),
        skew=_skew(spark, store, ran),
    )


# Plans of a frame, and the figures of its operators.
Described: TypeAlias = tuple[PlanTexts | None, tuple[OperatorMetric, ...]]


def describe_frame(frame: DataFrame) -> Described:
    """Return the plans of a computed frame, and the figures of its operators; none of a remote frame."""
    if not hasattr(frame, "_jdf"):
        return None, ()
    return plan_texts(frame), operator_metrics(frame)


def operator_metrics(frame: DataFrame) -> tuple[OperatorMetric, ...]:
    """Return the metrics of the operators that computed a frame, which must still be persisted."""
    return tuple(_operator_metrics(frame))


def _stage(store: Any, number: int) -> Any:
    """Return the last attempt of a stage; None if the status store has dropped it."""
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


def _operator_metrics(frame: DataFrame) -> Iterator[OperatorMetric]:
    # Unit by key of the metric, to fetch each type once. Averages have no unit.
    units: dict[str, str | None] = {}
    for number, operator in enumerate(operators(frame)):
        for node in operator.nodes:
            metrics = node.metrics()
            for key, name, value in METRIC.findall(metrics.toString()):
                if key not in units:
                    units[key] = UNITS.get(metrics.apply(key).metricType())
                metric = metric_name(name, units[key])
                if metric and (int(value) or metric == ROWS):
                    yield OperatorMetric(number, operator.name, metric, int(value))


def metric_name(name: str, unit: str | None) -> str | None:
    """Return Spark's name of a metric in snake_case with its unit; None for averages, which do not add up.

    >>> metric_name("number of output rows", ""), metric_name("spill size", "bytes")
    ('output_rows', 'spill_size_bytes')
    """
    if unit is None:
        return None
    metric = re.sub(r"\W+", "_", name.lower().removeprefix("number of ")).strip("_")
    return metric if not unit or unit in metric.split("_") else f"{metric}_{unit}"
