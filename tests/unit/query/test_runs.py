"""What `codeanatomy runs` says of each run, and of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import UnknownName
from codeanatomy.lake.manifest import InputPin
from codeanatomy.query.status.run_reports import RunReport, Runs, StepReport, TableVersions, run_report, runs
from support.commands import RunCommand, command_runner
from support.light_builds import clean_lake
from support.small_lakes import HASH, MINUTE, NOON, SmallLake

OTHER = HASH[::-1]
COUNTS = {"ast_files_v1": 10, "extract_error_artifacts": 1, "relations_v1": 100}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Two runs of which the second has skipped what it could, and one that has failed."""
    made = SmallLake(tmp_path_factory.mktemp("lake"))
    done = {"extract": "one/extract", "relate": "one/relate"}
    made.publish("one", {name: {"row_counts": COUNTS, "artifact_ids": done} for name in ("a", "b")})
    both = {"row_counts": COUNTS, "trace_id": "f" * 32, "step_ms": {"publish": 40, "relate": 2000}}
    both["input_pins"] = (InputPin("relations_v1", 0), InputPin("ast_files_v1", 7))
    made.publish(
        "two",
        {
            "a": {**both, "artifact_ids": {**done, "relate": "two/relate"}},
            "b": {**both, "artifact_ids": done, "git_commit": "c" * 40},
        },
        failed={"c": "cannot be opened"},
    )
    made.fail("three", {"a": "stopped"}, status="cancelled")
    artifacts(made, "two", {"step_name": "relate", "fingerprints": {"a": OTHER}, "rows": 100})
    return made


def artifacts(lake: SmallLake, run_id: str, *steps: dict[str, Any]) -> None:
    """What a run has recorded of its steps."""
    rows = [
        {
            "run_id": run_id,
            "event_no": number,
            "event_time": NOON,
            "artifact_id": f"{run_id}/{step['step_name']}",
            "status": "succeeded",
            "bytes": 3 * 1024 * 1024,
            "jobs": 4,
            "tasks": 12,
            "skew": 1.26,
            "spilled_bytes": 0,
            "duration_ms": 1500,
            **step,
        }
        for number, step in enumerate(steps)
    ]
    append_small(str(lake.root), catalog.table("plan_artifacts"), rows, Commit(run_id))


def test_runs_are_listed_newest_first(lake: SmallLake) -> None:
    found = runs(str(lake.root))
    assert [(row.run_id, row.status) for row in found.rows] == [
        ("three", "cancelled"),
        ("two", "failed"),
        ("one", "succeeded"),
    ]
    three, two, one = found.rows
    assert (one.started_at, one.seconds) == (NOON - MINUTE / 2, 30)
    assert (one.repositories, one.succeeded, one.rows, one.skipped) == (2, 2, 222, {})
    assert (two.repositories, two.succeeded) == (3, 2)
    # Only relations, and only of one repository.
    assert (two.rows, two.skipped) == (100, {"extract": 2, "relate": 1})
    assert (three.succeeded, three.rows, three.skipped) == (0, 0, {})
    cut = runs(str(lake.root), 1)
    assert ([row.run_id for row in cut.rows], cut.total) == (["three"], 3)


def test_a_run_with_what_its_steps_took(lake: SmallLake) -> None:
    found = run_report(str(lake.root), "tw")
    assert found.line == runs(str(lake.root)).rows[1]
    assert (found.trace_id, found.finished_at) == ("f" * 32, NOON + MINUTE)
    extract, relate, publish = found.steps
    assert extract == StepReport(step="extract", status="skipped", fingerprints={"a": HASH, "b": HASH})
    assert relate == StepReport(
        step="relate",
        status="succeeded",
        milliseconds=1500,
        rows=100,
        bytes=3 * 1024 * 1024,
        jobs=4,
        tasks=12,
        skew=1.26,
        spilled_bytes=0,
        fingerprints={"a": OTHER, "b": HASH},
    )
    assert publish == StepReport(step="publish", milliseconds=40)
    assert found.pins == (
        TableVersions("ast_files_v1", 7, None, None),
        TableVersions("extract_error_artifacts", None, 1, None),
        TableVersions("relations_v1", 0, 1, None),
    )
    assert [row.repo_id for row in found.repositories] == ["a", "b", "c"]


def test_a_run_of_which_no_artifacts_were_kept(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.publish("one", {"a": {"step_ms": {"relate": 7}}})
    steps = run_report(str(tmp_path), "one").steps
    assert steps == (
        StepReport(step="extract", fingerprints={"a": HASH}),
        StepReport(step="relate", milliseconds=7, fingerprints={"a": HASH}),
    )


def test_a_run_that_failed_has_its_error(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.fail("one", {"a": "step relate: no memory"})
    artifacts(made, "one", {"step_name": "relate", "status": "failed", "error": "no memory"})
    found = run_report(str(tmp_path), "one")
    assert [(step.step, step.status, step.error) for step in found.steps] == [
        ("relate", "failed", "no memory")
    ]
    assert (found.pins, found.repositories[0].error) == ((), "step relate: no memory")


def test_unknown_runs(lake: SmallLake) -> None:
    with pytest.raises(UnknownName, match="unknown run 'four'"):
        run_report(str(lake.root), "four")
    with pytest.raises(UnknownName, match="2 begin with 't'"):
        run_report(str(lake.root), "t")


# The commands


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_the_command_lists_runs(lake: SmallLake, run: RunCommand) -> None:
    code, out, err = run("runs", "--lake", str(lake.root))
    assert (code, err) == (0, "3 runs\n")
    assert [line.split() for line in out.splitlines()] == [
        ["run", "status", "mode", "started", "seconds", "repositories", "rows", "skipped"],
        ["three", "cancelled", "full", "2026-05-01T12:01:30Z", "30.0", "0", "of", "1", "0", "-"],
        [
            "two",
            "failed",
            "full",
            "2026-05-01T12:00:30Z",
            "30.0",
            *["2", "of", "3", "100", "extract,", "relate", "1/2"],
        ],
        ["one", "succeeded", "full", "2026-05-01T11:59:30Z", "30.0", "2", "222", "-"],
    ]
    _, out, err = run("runs", "--lake", str(lake.root), "--limit", "2")
    assert (len(out.splitlines()), err) == (3, "3 runs, 1 not shown (--limit)\n")
    _, out, _ = run("runs", "--lake", str(lake.root), "--format", "json")
    assert msgspec.json.decode(out, type=Runs) == runs(str(lake.root))


def test_the_command_shows_a_run(lake: SmallLake, run: RunCommand) -> None:
    code, out, err = run("runs", "show", "two", "--lake", str(lake.root))
    assert (code, err) == (0, "")
    facts, steps, pins, repositories = (part.splitlines() for part in out.split("\n\n"))
    assert ["trace", "f" * 32] in [line.split() for line in facts]
    assert [line.split() for line in steps[1:]] == [
        ["extract", "skipped", *"-------", "2", "fingerprints"],
        ["relate", "succeeded", "1.5", "100", "3.0", "4", "12", "1.3", "0.0", "2", "fingerprints"],
        ["publish", "-", "0.0", *"-------"],
    ]
    assert [line.split() for line in pins[1:]] == [
        ["ast_files_v1", "7", "-", "-"],
        ["extract_error_artifacts", "-", "1", "-"],
        ["relations_v1", "0", "1", "-"],
    ]
    # What failed comes first.
    assert [line.split()[:2] for line in repositories[1:]] == [
        ["c", "failed"],
        ["a", "succeeded"],
        ["b", "succeeded"],
    ]
    assert "cannot be opened" in repositories[1]


def test_the_command_shows_a_run_as_json(lake: SmallLake, run: RunCommand) -> None:
    for args in (
        ("runs", "show", "two", "--lake", str(lake.root), "--format", "json"),
        ("runs", "--lake", str(lake.root), "--format", "json", "show", "two"),
    ):
        code, out, err = run(*args)
        assert (code, err) == (0, "")
        assert msgspec.json.decode(out, type=RunReport) == run_report(str(lake.root), "two")


def test_a_run_of_many_repositories_is_cut(tmp_path: Path, run: RunCommand) -> None:
    made = SmallLake(tmp_path / "lake")
    made.publish("one", {f"r{number}": {} for number in range(30)})
    _, out, err = run("runs", "show", "one", "--lake", "lake")
    assert len(out.split("\n\n")[-1].splitlines()) == 21
    assert err == "10 repositories not shown (--format json)\n"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("runs",), 2, "Missing option '--lake'"),
        (("runs", "show", "two"), 2, "Missing option '--lake'"),
        (("runs", "show"), 2, "Missing argument 'ID'"),
        (("runs", "frob"), 2, "No such command"),
        (("runs", "--lake", "nowhere"), 6, "never written"),
        (("runs", "show", "two", "--lake", "nowhere"), 6, "never written"),
    ],
)
def test_the_commands_refuse(run: RunCommand, args: tuple[str, ...], code: int, said: str) -> None:
    done, out, err = run(*args)
    assert (done, out) == (code, "")
    assert said in err
    assert "Traceback" not in err


# Runs that have not ended


def leave_lease(lake: Path, run_id: str) -> None:
    """Take the lease in another process, which ends without releasing it."""
    program = (
        "import os, sys; from codeanatomy.lake.lease import acquire\n"
        "acquire(sys.argv[1], sys.argv[2], ['a', 'b'], wait=False, report=print, base_run_id=None)\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, lake, run_id], check=True)


def test_a_dead_run_of_a_new_lake_is_listed(tmp_path: Path, run: RunCommand) -> None:
    leave_lease(tmp_path / "lake", "first")
    listed = runs(str(tmp_path / "lake"))
    assert [(each.run_id, each.status, each.repositories, each.succeeded) for each in listed.rows] == [
        ("first", "dead", 2, 0)
    ]
    code, _, err = run("runs", "--lake", str(tmp_path / "lake"))
    assert (code, err) == (0, "1 run\n")
    code, _, err = run("find", "a", "--lake", str(tmp_path / "lake"))
    assert code == 6
    assert "its only run is dead: run first" in err
    assert "wait" not in err


def test_a_dead_run_after_others_is_listed_first(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    lake.publish("one", {"a": {}})
    leave_lease(lake.root, "two")
    assert [(each.run_id, each.status) for each in runs(str(lake.root)).rows] == [
        ("two", "dead"),
        ("one", "succeeded"),
    ]


def test_the_next_run_records_a_dead_one(tmp_path: Path) -> None:
    source, lake = tmp_path / "a", tmp_path / "lake"
    source.mkdir()
    (source / "m.py").write_text("x = 1\n")
    leave_lease(lake, "first")
    report = clean_lake(lake, {"a": source})
    assert [(each.run_id, each.status) for each in runs(str(lake)).rows] == [
        (report.run_id, "succeeded"),
        ("first", "failed"),
    ]
    dead = run_report(str(lake), "first").repositories
    assert [row.repo_id for row in dead] == ["a", "b"]
    assert dead[0].error == (
        f"the run died; steps that were done: none; run {report.run_id} has taken over or undone them"
    )
