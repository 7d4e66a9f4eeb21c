"""Maintenance of a real lake: rows stay, files go, runs stay readable, and the next build goes on from it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.config import load_settings
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.read.readable import is_readable
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import (
    LeaseHeld,
    StorageFailure,
    TableMissing,
    UsageError,
    VersionGone,
)
from codeanatomy.lake.lease import StepDone, acquire, read_lease
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain import maintenance as upkeep
from codeanatomy.maintain.inspection import Outcome
from codeanatomy.maintain.maintenance import MaintenanceReport
from codeanatomy.maintain.removal import remove
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from support.aged_lake import RUNS, copied, in_a_year, source
from support.light_builds import clean_lake, refreshed
from support.maintenance_runs import counted, run_maintenance
from support.sessions import no_session


@pytest.fixture
def lake(aged_lake: Path, tmp_path: Path) -> Path:
    return copied(aged_lake, tmp_path)


def operations(report: MaintenanceReport) -> dict[str, list[str]]:
    done: dict[str, list[str]] = {}
    for each in report.outcomes:
        done.setdefault(each.operation, []).append(each.table_name)
    return done


def of_table(report: MaintenanceReport, name: str) -> list[Outcome]:
    return [each for each in report.outcomes if each.table_name == name]


def read_all(lake: Snapshot) -> None:
    for name in lake.pins:
        lake.rows(name, [catalog.table(name).primary_key[0]])


def test_a_dry_run_shows_what_and_why_and_writes_nothing(lake: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
    report = run_maintenance(lake, dry_run=True)
    assert report.run_id is None
    assert "cpg_nodes" in operations(report)["optimize"]
    (nodes,) = of_table(report, "cpg_nodes")
    assert nodes.outcome == "planned"
    assert nodes.reason.endswith("partitions")
    assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before


@pytest.mark.system
def test_old_versions_go_and_runs_within_the_retention_stay(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = sorted(read_manifest(str(lake)), key=lambda row: row.finished_at)
    # A retention that begins between the third run and the fourth, whenever it is looked at.
    moment = runs[2].finished_at + (runs[3].finished_at - runs[2].finished_at) / 10
    hours = (datetime.now(UTC) - moment).total_seconds() / 3600
    report = run_maintenance(lake, operations=("vacuum",), retention_hours=hours, unsafe=True)
    assert operations(report).keys() == {"vacuum"}
    assert {each.outcome for each in report.outcomes} == {"done"}
    # The third is what was published when the retention began.
    for row in runs[2:]:
        for pin in row.output_pins:
            assert counted(lake, pin.table_name, pin.version) == pin.rows
    assert not all(is_readable(str(lake), pin.table_name, pin.version) for pin in runs[1].output_pins)
    with pytest.raises(VersionGone, match=f"run {runs[1].run_id} cannot be read any more"):
        read_all(Snapshot.open(str(lake), runs[1].run_id))
    in_a_year(monkeypatch)
    assert {each.outcome for each in run_maintenance(lake, operations=("vacuum",)).outcomes} == {"done"}
    for name, newest in Snapshot.open(str(lake)).pins.items():
        assert counted(lake, name) == newest.rows
    assert verify(str(lake), None, 5).total == 0
    assert run_maintenance(lake, operations=("vacuum",)).outcomes == ()


@pytest.mark.system
def test_logs_are_cleaned_up_to_what_is_needed(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(200, 206):
        refreshed(lake, {"app": source(tmp_path / "src", version)})
    log = lake / "graph/cpg_nodes/_delta_log"
    assert len(list(log.glob("*.json"))) == RUNS + 6
    run_maintenance(lake, operations=("checkpoint",), by_hand=True)
    in_a_year(monkeypatch)
    report = run_maintenance(lake, operations=("cleanup_log",))
    (nodes,) = of_table(report, "cpg_nodes")
    assert (nodes.outcome, nodes.retention_hours) == ("done", 720)
    assert len(list(log.glob("*.json"))) == 1
    assert verify(str(lake), None, 5).total == 0
    refreshed(lake, {"app": source(tmp_path / "src", 300)})
    clean_lake(tmp_path / "clean", {"app": tmp_path / "src"})
    assert compare_lakes(str(lake), str(tmp_path / "clean")).total == 0


def test_a_short_retention_needs_a_second_option(lake: Path) -> None:
    with pytest.raises(UsageError, match=r"vacuum of .* would keep 167 hours, less than 168"):
        run_maintenance(lake, operations=("vacuum",), retention_hours=167)
    with pytest.raises(UsageError, match=r"cleanup_log of .* would keep 1 hours"):
        run_maintenance(lake, operations=("cleanup_log",), retention_hours=1)
    short = load_settings(("tables.cpg_nodes.upkeep.vacuum_hours=1",), env={}, start=None)
    with pytest.raises(UsageError, match="vacuum of cpg_nodes would keep 1 hours"):
        run_maintenance(lake, settings=short)
    report = run_maintenance(
        lake, no_session, "cpg_nodes", operations=("vacuum",), retention_hours=0, unsafe=True
    )
    assert [each.outcome for each in report.outcomes] == ["done"]
    assert counted(lake, "cpg_nodes") == Snapshot.open(str(lake)).pin("cpg_nodes").rows


def test_a_running_build_is_named_and_not_disturbed(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_year(monkeypatch)
    with acquire(str(lake), "run-now", ["app"], wait=False, report=print, base_run_id=None):
        with pytest.raises(LeaseHeld, match="is being written by run run-now"):
            run_maintenance(lake, operations=("vacuum",), wait=False)
        # To look is not to write.
        assert run_maintenance(lake, operations=("vacuum",), dry_run=True).outcomes


def test_by_hand_what_is_needed_is_refused_and_named(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_year(monkeypatch)
    older = read_manifest(str(lake))[1]
    # As if the newest published run read an old version: a build that has died has replaced its files.
    last = max(read_manifest(str(lake)), key=lambda row: row.finished_at)
    monkeypatch.setattr(
        "codeanatomy.maintain.retention.read_manifest",
        lambda root: [older, structs.replace(last, output_pins=older.output_pins)],
    )
    options = {"operations": ("vacuum",), "by_hand": True}
    refused = of_table(run_maintenance(lake, no_session, "ast_files_v1", **options), "ast_files_v1")
    assert [each.outcome for each in refused] == ["refused"]
    assert f"for run {last.run_id}, which reads version" in refused[0].reason
    assert "--keep-needed removes the other" in refused[0].reason
    pinned = {pin.table_name: pin for pin in older.output_pins}["ast_files_v1"]
    assert counted(lake, "ast_files_v1", pinned.version) == pinned.rows
    # By policy it is kept, and reported.
    kept_for = run_maintenance(lake, no_session, "ast_files_v1", operations=("vacuum",), dry_run=True).kept
    assert f"for run {last.run_id}, which reads version" in kept_for["ast_files_v1"]
    (kept,) = of_table(
        run_maintenance(lake, no_session, "ast_files_v1", keep_needed=True, **options), "ast_files_v1"
    )
    assert kept.outcome == "done"
    assert counted(lake, "ast_files_v1", pinned.version) == pinned.rows


@pytest.mark.system
def test_a_vacuum_racing_with_builds_loses_nothing(lake: Path, tmp_path: Path) -> None:
    def build_some() -> None:
        for version in range(100, 103):
            refreshed(lake, {"app": source(tmp_path / "src", version)})

    vacuums = 0
    with ThreadPoolExecutor(1) as builder:
        building = builder.submit(build_some)
        while not building.done():
            report = run_maintenance(lake, operations=("vacuum",), retention_hours=0, unsafe=True)
            assert {each.outcome for each in report.outcomes} <= {"done"}
            vacuums += report.run_id is not None
        building.result()
    assert vacuums
    clean_lake(tmp_path / "clean", {"app": tmp_path / "src"})
    assert compare_lakes(str(lake), str(tmp_path / "clean")).total == 0
    assert verify(str(lake), None, 5).total == 0


def test_what_a_dead_build_has_left_is_left_alone(lake: Path) -> None:
    # Another process has written to a table, and no run has published it.
    restore_table(str(lake), "cpg_nodes", 0, Commit("dead", sequence=5))
    version = newest_version(str(lake), "cpg_edges")
    report = run_maintenance(lake, no_session, "cpg_nodes", "cpg_edges")
    assert "1 tables have versions that no run has published (cpg_nodes" in report.left_alone["cpg_edges"]
    assert newest_version(str(lake), "cpg_edges") == version
    assert not report.published


@pytest.mark.parametrize("is_of_this", [True, False])
def test_the_journal_of_a_dead_build_is_kept(
    lake: Path, monkeypatch: pytest.MonkeyPatch, is_of_this: bool
) -> None:
    in_a_year(monkeypatch)
    base = Snapshot.open(str(lake)).run_id if is_of_this else "another"
    lease = acquire(str(lake), "run-dead", ["app"], wait=False, report=print, base_run_id=base)
    lease.record_step(
        StepDone("extract", {"app": "f" * 32}, {"app": {"ast_files_v1": 4}}, {"ast_files_v1": 9})
    )
    lease.release(keep_journal=True)
    run_maintenance(lake, operations=("vacuum",))
    row = read_lease(str(lake))
    assert row is not None
    if not is_of_this:
        # It builds on something that is not published any more: no build may continue it.
        assert row.done == ()
        return
    (step,) = row.done
    assert (step.step_name, step.fingerprints, step.made_by) == (
        "extract",
        {"app": "f" * 32},
        {"app": "run-dead"},
    )


def test_a_table_that_fails_stops_no_other(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_year(monkeypatch)

    def failing(removal: Any) -> None:
        if "cpg_nodes" in removal.folder:
            raise StorageFailure("the disk is read-only", "wait")
        remove(removal)

    monkeypatch.setattr(upkeep, "remove", failing)
    report = run_maintenance(lake, operations=("vacuum",))
    outcomes = {each.table_name: each.outcome for each in report.outcomes}
    assert outcomes.pop("cpg_nodes") == "failed"
    assert set(outcomes.values()) == {"done"}


def test_a_damaged_table_stops_no_other(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_year(monkeypatch)
    newest = max((lake / "graph/cpg_nodes/_delta_log").glob("*.json"))
    newest.write_text("no json\n")
    report = run_maintenance(lake, operations=("vacuum",))
    assert [each.outcome for each in of_table(report, "cpg_nodes")] == ["failed"]
    assert "cannot be read" in of_table(report, "cpg_nodes")[0].reason
    assert {each.outcome for each in of_table(report, "cpg_edges")} == {"done"}


def test_a_log_is_checkpointed(lake: Path) -> None:
    report = run_maintenance(lake, no_session, "cpg_nodes", operations=("checkpoint",), by_hand=True)
    assert [each.outcome for each in report.outcomes] == ["done"]
    assert list((lake / "graph/cpg_nodes/_delta_log").glob("*.checkpoint.parquet"))
    assert (
        run_maintenance(lake, no_session, "cpg_nodes", operations=("checkpoint",), by_hand=True).outcomes
        == ()
    )


def test_wrong_names_and_empty_places(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(TableMissing, match="has no tables"):
        run_maintenance(tmp_path / "nothing", dry_run=True)
    with pytest.raises(TableMissing, match="has no questions"):
        run_maintenance(lake, no_session, "questions", dry_run=True)
    with pytest.raises(UsageError, match="maintained by the holder of the lease"):
        run_maintenance(lake, no_session, "run_lease")
