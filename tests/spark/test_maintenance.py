"""Maintenance that needs Spark: compaction, and writers that commit meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import CommitConflict
from codeanatomy.lake.manifest import append_manifest, read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain import maintenance as upkeep
from codeanatomy.maintain.maintenance_run import MaintenanceRun
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from support.aged_lake import RUNS, copied, source
from support.light_builds import clean_lake, refreshed
from support.maintenance_runs import counted, run_maintenance
from support.sessions import no_session

# Every table costs some jobs.
SOME = ("file_line_index_v1", "cpg_nodes", "run_manifest")


@pytest.fixture
def lake(aged_lake: Path, tmp_path: Path) -> Path:
    return copied(aged_lake, tmp_path)


@pytest.mark.parametrize("tables", [SOME, pytest.param((), marks=pytest.mark.system)], ids=["some", "all"])
def test_a_lake_is_compacted_and_is_the_same(
    lake: Path, aged_lake: Path, spark: SparkSession, tmp_path: Path, tables: tuple[str, ...]
) -> None:
    before = Snapshot.open(str(lake))
    report = run_maintenance(lake, lambda: spark, *tables)
    assert {each.outcome for each in report.outcomes} == {"done"}
    assert report.published
    after = Snapshot.open(str(lake))
    assert after.run_id == report.run_id
    for name in ("cpg_nodes", "file_line_index_v1"):
        assert after.pin(name).version > before.pin(name).version
        assert len(after.files(name)) < len(before.files(name))
    # Rows that vectors had removed were not written again.
    assert any(file.vector for file in before.files("file_line_index_v1"))
    assert not any(file.vector for file in after.files("file_line_index_v1"))
    difference = compare_lakes(str(aged_lake), str(lake))
    assert difference.total == 0, difference
    assert verify(str(lake), None, 5).total == 0
    # Every run that was published is what it was.
    for row in read_manifest(str(lake)):
        for pin in row.output_pins:
            assert pin.rows == counted(lake, pin.table_name, pin.version)
    recorded = light_table(str(lake), "delta_maintenance", ["run_id", "operation", "outcome", "reason"])
    assert len(recorded) == len(report.outcomes)
    # Nothing is left to do, and nothing is done.
    again = run_maintenance(lake, no_session, *tables)
    assert (again.run_id, again.outcomes) == (None, ())
    # A build finds it as it was, and goes on from it.
    assert refreshed(lake, {"app": source(tmp_path / "src", RUNS - 1)}).status == "unchanged"
    refreshed(lake, {"app": source(tmp_path / "src", 77)})
    clean_lake(tmp_path / "clean", {"app": tmp_path / "src"})
    assert compare_lakes(str(lake), str(tmp_path / "clean")).total == 0


def test_what_maintenance_has_left_unpublished_is_published_by_the_next(
    lake: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(upkeep, "_publish", dies)
        with pytest.raises(KeyboardInterrupt):
            run_maintenance(lake, lambda: spark, "file_line_index_v1")
    pin = Snapshot.open(str(lake)).pin("file_line_index_v1").version
    assert newest_version(str(lake), "file_line_index_v1") == pin + 1
    # What was done is recorded nevertheless.
    recorded = light_table(str(lake), "delta_maintenance", ["table_name", "delta_version"]).to_pylist()
    assert recorded == [{"table_name": "file_line_index_v1", "delta_version": pin + 1}]
    report = run_maintenance(lake, no_session, "file_line_index_v1")
    assert (report.published, report.left_alone) == (True, {})
    assert Snapshot.open(str(lake)).pin("file_line_index_v1").version == pin + 1


def test_a_run_that_publishes_meanwhile_is_not_overwritten(
    lake: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = upkeep._publish

    def late(run: MaintenanceRun, *rest: Any) -> None:
        row = read_manifest(str(lake))[-1]
        other = structs.replace(row, run_id="other", finished_at=datetime.now(UTC))
        append_manifest(str(lake), [other], Commit("other"), after=None)
        publish(run, *rest)

    monkeypatch.setattr(upkeep, "_publish", late)
    with pytest.raises(CommitConflict):
        run_maintenance(lake, lambda: spark, "file_line_index_v1")
    assert Snapshot.open(str(lake)).run_id == "other"


def test_a_stranger_that_writes_meanwhile_is_not_published(
    lake: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Snapshot.open(str(lake))
    publish = upkeep._publish

    def late(run: MaintenanceRun, *rest: Any) -> None:
        restore_table(str(lake), "file_line_index_v1", 0, Commit("stranger", sequence=5))
        publish(run, *rest)

    monkeypatch.setattr(upkeep, "_publish", late)
    with pytest.raises(CommitConflict, match="run stranger wrote to file_line_index_v1"):
        run_maintenance(lake, lambda: spark, "file_line_index_v1")
    assert Snapshot.open(str(lake)).run_id == before.run_id
