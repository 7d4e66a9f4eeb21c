"""What Spark tells of jobs with a tag, and of the operators of a frame that is cached."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from codeanatomy.spark.metrics import (
    JobMetrics,
    OperatorMetric,
    job_metrics,
    metric_name,
    operator_metrics,
)
from codeanatomy.spark.plans import plan_texts
from codeanatomy.spark.session import clone_session


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from (batch, batch)


@contextmanager
def tag_jobs(spark: SparkSession, tag: str) -> Iterator[None]:
    spark.addTag(tag)
    yield
    spark.removeTag(tag)


@pytest.fixture(scope="module")
def cached(spark: SparkSession) -> Iterator[DataFrame]:
    """100 numbers twice, exchanged, kept on disk and counted with a tag."""
    rows = spark.range(0, 200, 1, 2).where("id < 100").repartition(3, "id").mapInArrow(doubled, "id bigint")
    frame = rows.persist(StorageLevel.DISK_ONLY)
    with tag_jobs(spark, "run/cached"):
        assert frame.where("id >= 0").count() == 200
    yield frame
    frame.unpersist()


def test_figures_are_those_of_the_execution_that_filled_the_cache(cached: DataFrame) -> None:
    rows = {each.operator: each.value for each in operator_metrics(cached) if each.metric == "output_rows"}
    assert rows == {"MapInArrow": 200, "Filter": 100, "Range": 200}
    exchange = {each.metric: each.value for each in operator_metrics(cached) if each.operator == "Exchange"}
    assert (exchange["shuffle_records_written"], exchange["partitions"]) == (100, 3)
    assert exchange["shuffle_bytes_written"] > 100
    assert exchange["shuffle_write_time_ns"] > 1000
    [sent] = [each for each in operator_metrics(cached) if each.metric == "data_sent_to_python_workers_bytes"]
    assert sent.value > 800


def test_the_number_of_an_operator_is_that_of_its_line(cached: DataFrame) -> None:
    lines = plan_texts(cached).physical.splitlines()
    assert [line.split()[0] for line in lines] == ["MapInArrow", "Exchange", "Filter", "Range"]
    found = operator_metrics(cached)
    assert {each.operator_no for each in found} == {0, 1, 2, 3}
    assert all(lines[each.operator_no].split()[0] == each.operator for each in found)


def test_what_is_cached_below_others_is_told_once(cached: DataFrame) -> None:
    both = cached.select("id").union(cached.select((F.col("id") + 1).alias("id")))
    plan = plan_texts(both)
    assert (plan.optimized.count("MapInArrow"), plan.physical.count("MapInArrow")) == (1, 1)
    assert plan.optimized.count("InMemoryRelation") == plan.physical.count("InMemoryTableScan") == 2
    told = [each for each in operator_metrics(both) if each.operator == "MapInArrow"]
    assert OperatorMetric(told[0].operator_no, "MapInArrow", "output_rows", 200) in told
    assert len({each.operator_no for each in told}) == 1
    lines = plan.physical.splitlines()
    assert lines[told[0].operator_no].split()[0] == "MapInArrow"


def test_a_plan_that_has_run_has_no_wrappers_and_no_initial_plan(cached: DataFrame) -> None:
    texts = plan_texts(cached)
    assert not re.search(r"Adaptive|QueryStage|Codegen|InputAdapter|Initial|==", texts.physical)
    assert texts.optimized.splitlines()[0].startswith("MapInArrow doubled(id), [id]")
    assert "InMemoryRelation" not in texts.optimized
    assert "splits=*" in texts.optimized


def test_only_jobs_with_the_tag_are_counted(spark: SparkSession, cached: DataFrame) -> None:
    numbers = spark.range(0, 6, 1, 3)
    with tag_jobs(spark, "run/one"):
        assert numbers.toArrow().num_rows == 6
        with tag_jobs(spark, "run/two"):
            assert numbers.toArrow().num_rows == 6
    assert numbers.toArrow().num_rows == 6
    assert job_metrics(spark, "run/two").tasks == 3
    # A tag inside of another has both.
    assert (job_metrics(spark, "run/one").jobs, job_metrics(spark, "run/one").tasks) == (2, 6)
    assert job_metrics(spark, "run") == JobMetrics(jobs=0, tasks=0, spilled_bytes=0, skew=None)
    # Two tasks before the exchange, three behind it, and those of the count.
    assert job_metrics(spark, "run/cached").tasks > 5


def test_a_task_that_takes_long_is_skew(spark: SparkSession) -> None:
    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(1.0 if batch.column(0)[0].as_py() == 0 else 0.05)
            yield batch

    with tag_jobs(spark, "run/skew"):
        spark.range(0, 4, 1, 4).mapInArrow(wait, "id bigint").toArrow()
    skew = job_metrics(spark, "run/skew").skew
    assert skew is not None
    assert skew > 1.5


def test_what_does_not_fit_is_counted(spark: SparkSession) -> None:
    tight = clone_session(
        spark,
        {
            "spark.sql.windowExec.buffer.in.memory.threshold": "10",
            "spark.sql.windowExec.buffer.spill.threshold": "10",
        },
    )
    window = Window.partitionBy(F.col("id") % 2).orderBy("id").rowsBetween(-1, 1)
    frame = tight.range(0, 500, 1, 1).select(F.sum("id").over(window).alias("sum"))
    with tag_jobs(tight, "run/spill"):
        frame.agg(F.sum("sum")).collect()
    assert job_metrics(spark, "run/spill").spilled_bytes > 0


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("number of output rows", "", "output_rows"),
        ("spill size", "bytes", "spill_size_bytes"),
        ("shuffle bytes written", "bytes", "shuffle_bytes_written"),
        ("scan time", "ms", "scan_time_ms"),
        ("time to run Python workers", "ms", "time_to_run_python_workers_ms"),
        ("avg hash probes per key", None, None),
    ],
)
def test_a_figure_is_named_with_its_unit(name: str, unit: str | None, expected: str | None) -> None:
    assert metric_name(name, unit) == expected
