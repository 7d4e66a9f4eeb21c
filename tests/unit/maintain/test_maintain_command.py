"""`codeanatomy maintain` and its single verbs: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json

from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.lake.lease import acquire
from support.aged_lake import copied, in_a_year
from support.commands import RunCommand, command_runner


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


@pytest.fixture
def lake(aged_lake: Path, tmp_path: Path) -> Path:
    return copied(aged_lake, tmp_path)


def test_what_would_be_done_is_a_table(run: RunCommand, lake: Path) -> None:
    code, out, err = run("maintain", "--lake", str(lake), "--dry-run")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["table", "operation", "outcome"]
    assert any(line.split()[:3] == ["cpg_nodes", "optimize", "planned"] for line in out.splitlines())
    assert "operations would be done" in err


def test_as_an_object(run: RunCommand, lake: Path) -> None:
    code, out, _ = run("maintain", "--lake", str(lake), "--dry-run", "--format", "json")
    report = json.decode(out)
    assert code == 0
    assert {each["operation"] for each in report["outcomes"]} == {"optimize"}
    nodes = next(each for each in report["before"] if each["table"] == "cpg_nodes")
    assert nodes["version"] == newest_version(str(lake), "cpg_nodes")


def test_a_verb_does_its_operation_alone(
    run: RunCommand, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_year(monkeypatch)
    code, out, err = run("vacuum", "cpg_nodes", "cpg_edges", "--lake", str(lake))
    assert code == 0
    assert {tuple(line.split()[:3]) for line in out.splitlines()[1:]} == {
        ("cpg_nodes", "vacuum", "done"),
        ("cpg_edges", "vacuum", "done"),
    }
    assert "operations, run " in err
    code, out, err = run("vacuum", "cpg_nodes", "cpg_edges", "--lake", str(lake))
    assert (code, out) == (0, "")
    assert "nothing to do" in err


def test_a_short_retention_is_refused(run: RunCommand, lake: Path) -> None:
    code, _, err = run("vacuum", "--lake", str(lake), "--retention-hours", "24")
    assert code == 2
    assert "add --unsafe" in err


def test_cron_does_not_wait(run: RunCommand, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_year(monkeypatch)
    with acquire(str(lake), "run-now", ["app"], wait=False, report=print, base_run_id=None):
        code, _, err = run("vacuum", "--lake", str(lake), "--no-wait")
    assert code == 5
    assert "is being written by run run-now" in err


def test_unknown_tables_and_lakes(run: RunCommand, lake: Path, tmp_path: Path) -> None:
    code, _, err = run("optimize", "cpg_node", "--lake", str(lake))
    assert code == 2
    assert "did you mean cpg_nodes?" in err
    code, _, err = run("maintain", "--lake", str(tmp_path / "none"))
    assert code == 6
    assert "has no tables" in err


def test_properties_that_differ_are_shown(run: RunCommand, lake: Path) -> None:
    code, out, err = run("properties", "--lake", str(lake))
    assert (code, out) == (0, "")
    assert "nothing to do" in err
    other = ("--set", "tables.cpg_nodes.upkeep.checkpoint_interval=5")
    code, out, _ = run(*other, "properties", "cpg_nodes", "--lake", str(lake))
    assert code == 1
    assert "1 differ from the catalogue: delta.checkpointInterval" in out


def test_features_are_listed_and_only_those_allowed_are_switched_on(run: RunCommand, lake: Path) -> None:
    code, out, _ = run("features", "repo_files_v1", "span_errors_v1", "--lake", str(lake))
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("span_errors_v1"))
    assert line.split()[:4] == ["span_errors_v1", "0", "3", "7"]
    assert "appendOnly, deletionVectors, invariants" in line
    assert line.endswith("not deltalake to_pyarrow_dataset, to_pandas, DuckDB on the files")
    code, _, err = run("features", "span_errors_v1", "--lake", str(lake), "--enable", "row_tracking")
    assert code == 6
    assert "add it to tables.span_errors_v1.upkeep.optional_features; allowed: deletion_vectors" in err
    code, _, err = run("features", "--lake", str(lake), "--enable", "deletion_vectors")
    assert code == 2
    assert "name each TABLE" in err
