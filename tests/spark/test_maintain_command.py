"""The maintain command with a Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.lake.snapshot import Snapshot
from support.aged_lake import copied
from support.commands import RunCommand, command_runner


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


@pytest.fixture
def lake(aged_lake: Path, tmp_path: Path) -> Path:
    return copied(aged_lake, tmp_path)


def test_a_feature_is_switched_on_and_published(
    run: RunCommand, lake: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Commands open and close sessions of their own.
    monkeypatch.setattr("codeanatomy.spark.session.open_session", lambda *_: spark)
    monkeypatch.setattr("codeanatomy.spark.session.leave_session", lambda _: None)
    code, out, err = run("features", "span_errors_v1", "--lake", str(lake), "--enable", "deletion_vectors")
    assert code == 0, err
    assert "deletionVectors" in out
    pin = Snapshot.open(str(lake)).pin("span_errors_v1")
    assert pin.version == newest_version(str(lake), "span_errors_v1") == 1
    assert "deletionVectors" in pin.features
