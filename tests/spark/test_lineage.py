"""Recorded filters and joins of a build by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.lake.recorded_queries import record_queries
from support.edits import write_tree
from support.query_records import NODES, SOURCE, recorded_query
from support.spark_builds import built, rows


@pytest.mark.system
def test_a_build_by_spark_records_what_its_plans_filter(spark: SparkSession, tmp_path: Path) -> None:
    write_tree(tmp_path / "source", SOURCE)
    repositories, lake = {"app": tmp_path / "source"}, tmp_path / "lake"
    auto = [f"tables.{name}.write.stats_policy=auto" for name in (NODES, "ast_files_v1")]
    assert built(spark, lake, repositories, settings=auto, until=None).status == "succeeded"
    scans = [row for row in rows(lake, "delta_scan_plans") if row["purpose"] == "build"]
    # Every input is read for the repositories that are built.
    for name in ("ast_files_v1", "repo_files_v1", "relations_v1"):
        found = [row["filter_columns"] for row in scans if row["table_name"] == name]
        assert found, name
        assert all("repo_id" in each for each in found), name
    record_queries(str(lake), [recorded_query(NODES, "line", purpose="callers")])
    write_tree(tmp_path / "source", {**SOURCE, "c.py": b"x = 1\n"})
    again = built(spark, lake, repositories, settings=[*auto, "refresh.max_share=0"], until=None)
    assert again.status == "succeeded"
    told = {row["table_name"]: row for row in rows(lake, "stats_decisions") if row["run_id"] == again.run_id}
    assert dict(told["ast_files_v1"]["reasons"])["repo_id"].endswith("of build")
    assert dict(told[NODES]["reasons"])["line"] == "filtered by 1 scan of callers"
    for name, column in ((NODES, "line"), ("ast_files_v1", "repo_id")):
        folder = lake / catalog.table(name).path / "_delta_log"
        actions = [json.decode(line) for line in max(folder.glob("*.json")).read_bytes().splitlines()]
        told_of = [json.decode(each["add"]["stats"])["minValues"] for each in actions if "add" in each]
        assert any(column in each for each in told_of)
