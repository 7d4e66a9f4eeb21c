"""The example that keeps a table of a user up to date, by runs and as a stream."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as LightTable
from pyspark.sql import SparkSession

from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.snapshot import Snapshot
from support.folders import ROOT
from support.light_builds import clean_lake
from support.three_runs import ThreeRuns

FILES = "repo_files_v1"
# Between the sizes of the files, so that edits make them larger or smaller than this.
MIN_BYTES = 24


def example() -> ModuleType:
    """`examples/follow_changes.py`, which is no package's."""
    spec = importlib.util.spec_from_file_location("follow_changes", ROOT / "examples" / "follow_changes.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published(lake: ThreeRuns) -> list[tuple[Any, ...]]:
    rows = Snapshot.open(str(lake.root)).rows(FILES, ["repo_id", "path", "size_bytes"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows if row["size_bytes"] >= MIN_BYTES)


def followed(spark: SparkSession, target: str) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(target).select("repo_id", "path", "size_bytes").collect()
    return sorted(map(tuple, rows))


def merges(spark: SparkSession, target: str) -> list[tuple[int, int, int]]:
    """Rows inserted, updated and deleted by each MERGE."""
    history = DeltaTable.forPath(spark, target).history().orderBy("version").collect()
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    done = [row.operationMetrics for row in history if row.operation == "MERGE"]
    return [(int(each[names[0]]), int(each[names[1]]), int(each[names[2]])) for each in done]


@pytest.mark.system
def test_a_table_that_follows_a_lake(tmp_path: Path, spark: SparkSession) -> None:
    follow = example()
    lake = ThreeRuns(tmp_path / "three", ())
    root, by_runs, by_stream = str(lake.root), str(tmp_path / "by_runs"), str(tmp_path / "by_stream")
    checkpoint = str(tmp_path / "checkpoint")
    sizes = []
    for state in range(3):
        if state:
            lake.build(state)
        else:
            clean_lake(lake.root, lake.put(0))
        run_id = follow.follow_runs(spark, root, by_runs, MIN_BYTES)
        assert run_id == Snapshot.open(root).run_id
        assert followed(spark, by_runs) == published(lake)
        # The stream finds the commits of two runs at its second call.
        if state != 1:
            follow.follow_stream(spark, root, by_stream, checkpoint, MIN_BYTES)
            assert followed(spark, by_stream) == published(lake)
        sizes.append(len(published(lake)))
    assert len(set(sizes)) > 1
    # Nothing new: nothing is written but the property.
    before = merges(spark, by_runs)
    follow.follow_runs(spark, root, by_runs, MIN_BYTES)
    assert followed(spark, by_runs) == published(lake)
    assert sum(map(sum, merges(spark, by_runs))) == sum(map(sum, before))
    # A build changed few rows, and only these were written.
    assert sum(before[0]) == sizes[0]
    assert all(0 < sum(each) < sizes[-1] for each in before[1:])


@pytest.mark.system
def test_a_lost_feed_starts_the_table_anew(tmp_path: Path, spark: SparkSession) -> None:
    follow = example()
    lake = ThreeRuns(tmp_path / "three", ())
    root, target = str(lake.root), str(tmp_path / "target")
    clean_lake(lake.root, lake.put(0))
    follow.follow_runs(spark, root, target, MIN_BYTES)
    lake.build(1)
    lake.build(2)
    # As after a cleanup of the log.
    log = Path(location(root, FILES), "_delta_log")
    LightTable(str(log.parent)).create_checkpoint()
    for entry in sorted(log.glob("*.json"))[:-1]:
        entry.unlink()
    follow.follow_runs(spark, root, target, MIN_BYTES)
    assert followed(spark, target) == published(lake)
