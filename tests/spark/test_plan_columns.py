"""Which columns plans of Spark filter and join by, against what the frames were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from codeanatomy.spark.plan_columns import PlanColumns, plan_columns

Frames = dict[str, DataFrame]
Case = Callable[[Frames], DataFrame]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Two tables that are nothing but files."""
    folder = tmp_path_factory.mktemp("plans")
    made = {
        "things": "SELECT id, CAST(id AS STRING) AS name, id % 3 AS kind, id > 5 AS big FROM range(9)",
        "links": "SELECT id AS src, id + 1 AS dst FROM range(9)",
    }
    for name, sql in made.items():
        spark.sql(sql).coalesce(1).write.parquet(str(folder / name))
    return {name: spark.read.parquet(str(folder / name)) for name in made}


CASES: dict[str, tuple[Case, PlanColumns, PlanColumns | None]] = {
    "nothing": (lambda t: t["things"].select("id"), PlanColumns(), None),
    "comparisons": (
        lambda t: t["things"].where("name > '3' AND (kind IN (1, 2) OR id IS NULL)"),
        PlanColumns(("id", "kind", "name")),
        None,
    ),
    "truth": (lambda t: t["things"].where("big AND kind = 1"), PlanColumns(("big", "kind")), None),
    "not null alone": (lambda t: t["things"].where("name IS NOT NULL"), PlanColumns(), None),
    "computed": (lambda t: t["things"].where("length(name) = 3 AND id % 2 = 1"), PlanColumns(), None),
    "renamed": (
        lambda t: t["things"].withColumnRenamed("kind", "k").select("k").distinct().where("k = 1"),
        PlanColumns(("kind",)),
        None,
    ),
    "joined": (
        lambda t: t["things"].join(t["links"], F.col("id") == F.col("src")).where("dst > 3").select("name"),
        PlanColumns((), ("id",)),
        PlanColumns(("dst",), ("src",)),
    ),
    "joined under other names": (
        lambda t: (
            t["things"]
            .withColumnRenamed("id", "a")
            .join(t["links"].withColumnRenamed("dst", "b"), F.col("a") == F.col("b"), "left")
            .where("kind = 2")
            .select("name", "src")
        ),
        PlanColumns(("kind",), ("id",)),
        PlanColumns((), ("dst",)),
    ),
    "passed through Python": (
        lambda t: (
            t["things"]
            .where("kind = 1")
            .mapInArrow(lambda found: found, "id long, name string, kind long, big boolean")
            .where("name = 'x'")
        ),
        PlanColumns(("kind",)),
        None,
    ),
    "united": (
        lambda t: t["things"].where("kind = 1").select("id").union(t["links"].where("dst = 1").select("src")),
        PlanColumns(("kind",)),
        PlanColumns(("dst",)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_of_plans(name: str, frames: Frames) -> None:
    make, things, links = CASES[name]
    found = plan_columns(make(frames))
    expected = {"things": things} | ({} if links is None else {"links": links})
    assert found == expected


def test_what_is_cached_is_looked_into(frames: Frames) -> None:
    kept = frames["things"].where("kind = 1").persist()
    try:
        assert plan_columns(kept) == {"things": PlanColumns(("kind",))}
        assert kept.count() == 3
        more = kept.where("name = '1'").join(frames["links"], F.col("id") == F.col("src"))
        found = plan_columns(more)
        assert found["things"] == PlanColumns(("kind", "name"), ("id",))
        assert found["links"] == PlanColumns((), ("src",))
    finally:
        kept.unpersist()


def test_a_frame_without_tables(spark: SparkSession) -> None:
    assert plan_columns(spark.range(3).where("id > 1")) == {}


def test_partitions_are_no_folders_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "nodes")
    spark.sql("SELECT id, id % 2 AS kind FROM range(4)").write.partitionBy("kind").parquet(place)
    found = plan_columns(spark.read.parquet(place).where("kind = 1 AND id < 3"))
    assert found == {"nodes": PlanColumns(("id", "kind"))}
