"""A classic session of versions that were not tested reads with the public interface, and cannot write."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.delta.store import Store
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.query.engines.public_store import PublicStore
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.lake import Lake
from codeanatomy.spark import versions
from codeanatomy.spark.versions import ALLOW_UNTESTED, TESTED, Versions, session_versions
from support.spark_builds import built
from support.three_runs import ThreeRuns, three_runs

FILES = "repo_files_v1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    return three_runs(tmp_path_factory)


@pytest.fixture
def untested(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session whose versions are not in the list."""
    monkeypatch.setattr(versions, "TESTED", (Versions("9.8.7", "6.5.4"),))
    return spark.newSession()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: plain_value(row[name]) for name in frame.columns} for row in frame.collect()]


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


def test_the_versions_of_this_session_are_tested(spark: SparkSession) -> None:
    assert session_versions(spark) in TESTED


@pytest.mark.system
def test_a_lake_is_read_with_the_public_interface(runs: ThreeRuns, untested: SparkSession) -> None:
    light, lake = Lake.open(runs.root), Lake.open(runs.root, spark=untested)
    assert isinstance(lake.reader.store, PublicStore)
    assert rows_of(lake.callers("two.k")) == list(light.callers("two.k").rows) != []
    changed = light.changes(FILES, runs.runs[0], every_commit=True, limit=1000).rows
    found = lake.changes(FILES, runs.runs[0], every_commit=True).drop("_commit_timestamp")
    assert counted(rows_of(found)) == counted(
        [{key: value for key, value in row.items() if key != "_commit_timestamp"} for row in changed]
    )
    lake.close()


def test_what_uses_internals_is_refused_by_name(
    untested: SparkSession, runs: ThreeRuns, tmp_path: Path
) -> None:
    named = f"{TESTED[-1]} was not tested"
    with pytest.raises(EnvironmentProblem, match=named) as caught:
        Store(untested, str(runs.root))
    assert "pip install pyspark==9.8.7 delta-spark==6.5.4" in caught.value.hint
    source = tmp_path / "app"
    source.mkdir()
    (source / "m.py").write_text("def f(): pass\n")
    with pytest.raises(EnvironmentProblem, match=named):
        built(untested, tmp_path / "lake", {"app": source})


def test_a_setting_of_the_session_goes_on_at_your_own_risk(untested: SparkSession, runs: ThreeRuns) -> None:
    untested.conf.set(ALLOW_UNTESTED, "true")
    assert Store(untested, str(runs.root)).uses_internals
    lake = Lake.open(runs.root, spark=untested)
    assert not isinstance(lake.reader.store, PublicStore)
    lake.close()
