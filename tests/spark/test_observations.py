"""Observations of a build by Spark, queried by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.views import RECORD_VIEWS
from codeanatomy.query.lake import Lake
from support.folders import write_sources
from support.observation_checks import FIRST, check_mutations, check_snapshots, recorded
from support.spark_builds import built


@pytest.mark.system
def test_a_build_by_spark_is_recorded_and_asked_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    report = built(spark, lake, {"shop": write_sources(tmp_path / "shop", FIRST)}, until=None)
    print(f"observed in {report.seconds['observe']:.3f} s")
    assert report.seconds["observe"] < 2
    check_mutations(lake, report.run_id)
    check_snapshots(lake, report.run_id)
    scans = recorded(lake, "delta_scan_plans")
    assert {"ast_files_v1", "relations_v1"} <= {row["table_name"] for row in scans}
    # Steps ask for the rows of repositories.
    assert {tuple(row["pushed_filters"]) for row in scans} == {("repo_id IN (?)",)}
    assert all("repo_id" in row["filter_columns"] for row in scans)
    assert all(row["total_files"] == row["candidate_files"] for row in scans)
    for row in scans:
        names = catalog.table(row["table_name"]).column_names
        assert row["projection"] == {} or tuple(row["projection"]) == names
    light, lane = Lake.open(str(lake)), Lake.open(str(lake), spark=spark)
    for view in RECORD_VIEWS:
        text = f"SELECT count(*) AS n FROM {view.name}"
        assert lane.sql(text).collect()[0]["n"] == light.sql(text).rows[0]["n"]
    lane.close()
