"""Frames of pieces that Spark keeps during a build: they are let go, also by a build that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import StepFailed, StorageFailure
from codeanatomy.pipeline import commits
from codeanatomy.pipeline.executors.spark_executor import SparkExecutor, SparkHeld
from codeanatomy.pipeline.tasks.pieces import Pieces
from codeanatomy.plan.steps import RELATE
from support.spark_builds import built
from support.two_repositories import put


def persisted(spark: SparkSession) -> list[str]:
    """What Spark keeps, besides the logs of tables that Delta keeps for itself."""
    kept = spark.sparkContext._jsc.getPersistentRDDs().values()
    names = [str(rdd.name()) for rdd in kept]
    return [name for name in names if "Delta Table State" not in name]


@pytest.mark.system
def test_a_step_that_fails_lets_them_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def broken(*given: Any, **more: Any) -> None:
        seen.append(persisted(spark))
        raise StorageFailure("it breaks", "")

    monkeypatch.setattr(commits, "commit_files", broken)
    with pytest.raises(StorageFailure, match="step extract failed: it breaks"):
        built(spark, tmp_path / "lake", {"b": put(tmp_path, "b")})
    assert any(seen)
    assert not persisted(spark)


@pytest.mark.system
def test_a_pass_that_fails_lets_them_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    map_groups = SparkExecutor.map_groups

    def with_a_bug(
        executor: SparkExecutor, step: str, held: Any, names: Any, by: Any, work: Any
    ) -> SparkHeld:
        def broken(groups: Any) -> Pieces:
            raise ValueError("a bug in a task")
            yield

        return map_groups(executor, step, held, names, by, broken)

    monkeypatch.setattr(SparkExecutor, "map_groups", with_a_bug)
    with pytest.raises(StepFailed, match=r"step relate failed: .*a bug in a task"):
        built(spark, tmp_path / "lake", {"b": put(tmp_path, "b")}, until=RELATE)
    assert not persisted(spark)
