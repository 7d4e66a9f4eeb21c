"""An exported snapshot opened by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.snapshot_export import export_snapshot
from support.three_runs import ThreeRuns, three_runs

NODES, EDGES = "cpg_nodes", "cpg_edges"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    return three_runs(tmp_path_factory)


@pytest.fixture(scope="module")
def copy(made: ThreeRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the newest run, which has vectors; not to be written to."""
    target = tmp_path_factory.mktemp("copies") / "copy"
    export_snapshot(str(made.root), target)
    return target


def test_spark_opens_it(spark: SparkSession, made: ThreeRuns, copy: Path) -> None:
    lake = Snapshot.open(str(made.root))
    for name in (NODES, "ast_files_v1"):
        frame = spark.read.format("delta").load(location(str(copy), name))
        key = catalog.table(name).primary_key[0]
        assert sorted(row[0] for row in frame.select(key).collect()) == sorted(
            lake.rows(name, [key]).column(0).to_pylist()
        )
    # And writes to it.
    history = spark.sql(f"DESCRIBE HISTORY delta.`{location(str(copy), NODES)}`").collect()
    assert [(row["version"], row["operation"]) for row in history] == [(0, "WRITE")]
