"""Lakes brought back to what a run has published, and single tables; and what cannot be brought back."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.delta.read.readable import have_same_content, missing_files, require_readable
from codeanatomy.delta.write.restore import restore_with_fallback
from codeanatomy.errors import (
    CommitConflict,
    LeaseHeld,
    TableMissing,
    UnknownName,
    UsageError,
    VersionGone,
)
from codeanatomy.lake.lease import acquire
from codeanatomy.lake.manifest import OutputPin, append_manifest, read_manifest
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.maintain import rollback
from codeanatomy.progress import Progress
from codeanatomy.query.status.failures import failures
from codeanatomy.run.build import plan
from support.commands import RunCommand, command_runner
from support.folders import TESTS
from support.light_builds import order
from support.log_files import entry_path, vector_file
from support.published_rows import counted
from support.small_lakes import ERRORS, HASH, RELATIONS, SmallLake
from support.three_runs import (
    ThreeRuns,
    copied,
    expect_clean,
    expect_sound,
    restored,
    rows,
    table_rows,
    three_runs,
)

NODES = "cpg_nodes"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    return three_runs(tmp_path_factory)


@pytest.fixture
def lake(made: ThreeRuns, tmp_path: Path) -> ThreeRuns:
    """A copy to be written to."""
    return copied(tmp_path, made)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def newest(lake: ThreeRuns) -> dict[str, int]:
    """The newest version of every table that runs pin, published or not."""
    return {name: newest_version(str(lake.root), name) for name in Snapshot.open(str(lake.root)).pins}


# A run as a whole


def test_the_runs_differ(made: ThreeRuns) -> None:
    """Else all of this would show nothing."""
    states = [rows(made.root, run) for run in made.runs]
    assert len({str(each) for each in states}) == len(made.runs) == 3
    lake = Snapshot.open(str(made.root))
    assert sum(file.vector is not None for name in lake.pins for file in lake.files(name)) > 20
    assert set(lake.repositories) == {"a", "b", "c"}


@pytest.mark.parametrize("run", [0, pytest.param(1, marks=pytest.mark.system)])
@pytest.mark.system
def test_every_row_of_a_run_is_there_again(lake: ThreeRuns, run: int) -> None:
    before, wanted = rows(lake.root), rows(lake.root, lake.runs[run])
    report = lake.restore(lake.runs[run])
    assert (report.status, report.restored_run, report.repositories) == (
        "restored",
        lake.runs[run],
        ("a", "b"),
    )
    assert report.notes == ("missing until they are built again: c",)
    snapshot = Snapshot.open(str(lake.root))
    assert snapshot.run_id == report.run_id
    assert rows(lake.root) == wanted
    assert set(snapshot.repositories) == {"a", "b"}
    expect_sound(lake)
    # What was there stays in the history, and can be restored in turn.
    assert rows(lake.root, lake.runs[2]) == before
    assert lake.restore(lake.runs[2]).repositories == ("a", "b", "c")
    assert rows(lake.root) == before
    expect_sound(lake)


def test_the_rows_of_the_manifest_are_those_of_then(lake: ThreeRuns) -> None:
    then, complaints = (
        Snapshot.open(str(lake.root), lake.runs[0]),
        failures(str(lake.root), as_of=lake.runs[0]),
    )
    newest_before = Snapshot.open(str(lake.root))
    report = lake.restore(lake.runs[0])
    now = Snapshot.open(str(lake.root))
    assert now.published_at > newest_before.published_at
    for repo_id, row in now.repositories.items():
        old = then.repositories[repo_id]
        assert (row.run_id, row.mode, row.status) == (report.run_id, "restore", "succeeded")
        assert row.extract_run_id == old.extract_run_id == lake.runs[0]
        same = ("source_digest", "plan_fingerprints", "rule_fingerprints", "row_counts", "error_counts")
        assert {name: getattr(row, name) for name in same} == {name: getattr(old, name) for name in same}
    assert complaints.total > 0
    assert failures(str(lake.root)).rows == complaints.rows
    pins = {name: pin.rows for name, pin in now.pins.items()}
    assert pins == {name: pin.rows for name, pin in then.pins.items()}


def test_nothing_is_rewritten(lake: ThreeRuns) -> None:
    def files() -> set[Path]:
        below = [
            path
            for stage in lake.root.iterdir()
            if stage.name not in ("meta", "observe")
            for path in stage.rglob("*")
        ]
        return {
            path for path in below if path.suffix in (".parquet", ".bin") and "_delta_log" not in path.parts
        }

    before = files()
    lake.restore(lake.runs[0])
    assert files() == before
    made = newest_version(str(lake.root), NODES)
    assert have_same_content(str(lake.root), NODES, made, lake.version(NODES, 0))
    stamp = decode_stamp(DeltaTable(location(str(lake.root), NODES)).history(1)[0].get("userMetadata"))
    assert stamp is not None
    assert stamp.operation == "restore"


@pytest.mark.system
def test_a_table_that_is_the_same_gets_no_version(lake: ThreeRuns) -> None:
    before = newest(lake)
    report = lake.restore(lake.runs[1])
    after = newest(lake)
    for each in report.tables:
        same = have_same_content(str(lake.root), each.table, each.from_version, each.restored_version or 0)
        assert after[each.table] == before[each.table] + (not same) == each.version
    # Both happen.
    assert {after[name] - before[name] for name in before} == {0, 1}


@pytest.mark.system
def test_what_is_published_already_is_left_alone(lake: ThreeRuns) -> None:
    before, runs = newest(lake), read_manifest(str(lake.root))
    report = lake.restore("latest")
    assert (report.status, report.run_id) == ("unchanged", lake.runs[2])
    assert newest(lake) == before
    assert read_manifest(str(lake.root)) == runs
    # And so is what was restored.
    again = lake.restore(lake.runs[0])
    assert lake.restore(lake.runs[0]).run_id == again.run_id
    assert lake.restore(str(again.run_id)).status == "unchanged"


def test_what_was_done_is_recorded(lake: ThreeRuns) -> None:
    report = lake.restore(lake.runs[0])
    table = catalog.table("delta_maintenance")
    events = light_table(str(lake.root), table.name, table.column_names).to_pylist()
    moved = {each.table: each for each in report.tables if each.version != each.from_version}
    assert {row["table_name"] for row in events} == set(moved)
    for row in events:
        assert (row["run_id"], row["operation"], row["outcome"]) == (report.run_id, "restore", "done")
        assert row["delta_version"] == moved[row["table_name"]].version
        assert row["from_version"] == moved[row["table_name"]].from_version
        assert row["reason"] == f"run {lake.runs[0]}: version {moved[row['table_name']].restored_version}"
    nodes = next(row for row in events if row["table_name"] == NODES)
    place = location(str(lake.root), NODES)
    old, new = (
        replay_log(place, version).adds for version in (nodes["from_version"], nodes["delta_version"])
    )
    assert nodes["files_removed"] == len(old.keys() - new.keys()) > 0
    assert nodes["bytes_removed"] == sum(old[path].size for path in old.keys() - new.keys())


@pytest.mark.system
def test_the_next_build_equals_a_clean_one(lake: ThreeRuns) -> None:
    lake.restore(lake.runs[0])
    # Of the sources of then there is nothing to do.
    assert lake.build(0).status == "unchanged"
    lake.build(1)
    expect_clean(lake, 1)
    expect_sound(lake)


@pytest.mark.system
def test_a_repository_that_is_gone_is_built_again(lake: ThreeRuns) -> None:
    lake.restore(lake.runs[0])
    report = lake.build(2)
    assert report.repositories["c"].status == "succeeded"
    expect_clean(lake, 2)
    expect_sound(lake)
    assert set(Snapshot.open(str(lake.root)).repositories) == {"a", "b", "c"}


def test_a_table_that_was_not_there_has_no_rows(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.write(ERRORS, [], "append")
    facts = {"output_pins": (OutputPin(ERRORS, 0),), "plan_fingerprints": {"extract": HASH}}
    made.record([made.row("one", "a", status="succeeded", **facts)])
    made.publish("two", {"a": {}}, calls=[("a", "m.f", "m.g")], errors=[("a", "bad.py", "one")])
    report = restored(tmp_path, "one")
    assert {each.table: (each.restored_version, each.rows) for each in report.tables} == {
        ERRORS: (0, 0),
        RELATIONS: (None, 0),
    }
    snapshot = Snapshot.open(str(tmp_path))
    assert set(snapshot.pins) == {ERRORS}
    assert snapshot.repositories["a"].extract_run_id == "one"


def test_columns_that_came_later_go(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.publish("one", {"a": {}}, calls=[("a", "m.f", "m.g")])
    table = DeltaTable(str(made.place(RELATIONS)))
    columns = table.schema().fields
    table.alter.add_columns([Field("later", PrimitiveType("string"))])
    pins = tuple(OutputPin(name, made.version(name)) for name in (ERRORS, RELATIONS))
    made.record([made.row("two", "a", status="succeeded", output_pins=pins)])
    assert restored(tmp_path, "one").status == "restored"
    assert DeltaTable(str(made.place(RELATIONS))).schema().fields == columns


# Half way


class Cut(BaseException):
    """A restore that ends here."""


def cut(monkeypatch: pytest.MonkeyPatch, after: int, problem: BaseException) -> None:
    """Let a restore end after some tables."""
    calls = iter(range(1000))

    def dying(*args: Any) -> int:
        if next(calls) == after:
            raise problem
        return restore_with_fallback(*args)

    monkeypatch.setattr(rollback, "restore_with_fallback", dying)


@pytest.mark.parametrize("after", [pytest.param(1, marks=pytest.mark.system), 12])
@pytest.mark.system
def test_half_a_restore_is_undone_by_the_next_build(
    lake: ThreeRuns, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    before, versions, runs = rows(lake.root), newest(lake), len(read_manifest(str(lake.root)))
    with monkeypatch.context() as patched:
        cut(patched, after, Cut())
        with pytest.raises(Cut):
            lake.restore(lake.runs[0])
    assert sum(version != versions[name] for name, version in newest(lake).items()) == after
    # Readers see what they saw.
    assert rows(lake.root) == before
    assert len(read_manifest(str(lake.root))) == runs
    lake.build(2)
    assert rows(lake.root) == before
    expect_clean(lake, 2)
    expect_sound(lake)


@pytest.mark.system
def test_half_a_restore_is_finished_by_the_next(lake: ThreeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = rows(lake.root, lake.runs[0])
    with monkeypatch.context() as patched:
        cut(patched, 9, CommitConflict("another process has written", "repeat it"))
        with pytest.raises(CommitConflict):
            lake.restore(lake.runs[0])
    events = light_table(str(lake.root), "delta_maintenance", ["outcome"]).to_pylist()
    assert [row["outcome"] for row in events] == ["done"] * 9 + ["failed"]
    lake.restore(lake.runs[0])
    assert rows(lake.root) == wanted
    expect_sound(lake)


KILLED = """
import os, sys
from pathlib import Path
from support.three_runs import restored
from codeanatomy.maintain import rollback

calls, restore = iter(range(1000)), rollback.restore_with_fallback

def dying(*args):
    if next(calls) == 5:
        os._exit(9)
    return restore(*args)

rollback.restore_with_fallback = dying
restored(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.system
def test_a_killed_restore_leaves_what_was_published(lake: ThreeRuns) -> None:
    """Its lease is taken over, for its process is gone."""
    before = rows(lake.root)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(lake.root), lake.runs[0]],
        cwd=TESTS,
        check=False,
        timeout=120,
    )
    assert done.returncode == 9
    assert rows(lake.root) == before
    lake.restore(lake.runs[1])
    assert rows(lake.root) == rows(lake.root, lake.runs[1])
    expect_sound(lake)


def test_what_another_run_publishes_meanwhile_is_not_lost(
    lake: ThreeRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that has lost the lease without noticing."""
    last = recorded_runs(str(lake.root))[-1].rows

    def interfering(*args: Any) -> int:
        if len(read_manifest(str(lake.root))) == count:
            other = [structs.replace(row, run_id="other") for row in last]
            append_manifest(str(lake.root), other, Commit("other"), after=None)
        return restore_with_fallback(*args)

    count = len(read_manifest(str(lake.root)))
    monkeypatch.setattr(rollback, "restore_with_fallback", interfering)
    with pytest.raises(CommitConflict, match="run_manifest is at version"):
        lake.restore(lake.runs[0])


def test_a_version_that_is_not_the_restored_one_is_not_published(
    lake: ThreeRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of a dead run may commit a moment later."""
    before = rows(lake.root)
    monkeypatch.setattr(rollback, "restore_with_fallback", lambda root, name, *_: newest_version(root, name))
    with pytest.raises(CommitConflict, match="is not the restored state"):
        lake.restore(lake.runs[0])
    assert rows(lake.root) == before


# While another process writes


@pytest.mark.system
def test_the_lease_is_waited_for_or_not(lake: ThreeRuns) -> None:
    held = acquire(str(lake.root), "other", ["a"], wait=False, report=print, base_run_id=None)
    before = newest(lake)
    try:
        with pytest.raises(LeaseHeld, match="run other"):
            lake.restore(lake.runs[0], wait=False)
        assert newest(lake) == before
        timer = threading.Timer(1.5, lambda: held.release(keep_journal=False))
        timer.start()
        assert lake.restore(lake.runs[0]).status == "restored"
        timer.join()
    finally:
        held.release(keep_journal=False)


# One table


def test_a_table_alone_is_pinned_and_made_again_by_the_next_build(lake: ThreeRuns) -> None:
    before = rows(lake.root)
    wanted = table_rows(Snapshot.open(str(lake.root), lake.runs[0]), NODES)
    report = lake.restore_table(NODES, lake.version(NODES, 0))
    assert (report.status, report.redone, report.restored_run) == ("restored", ("graph",), None)
    snapshot = Snapshot.open(str(lake.root))
    assert snapshot.run_id == report.run_id
    now = rows(lake.root)
    assert now == {**before, NODES: wanted}
    assert not counted(lake.root)
    assert set(snapshot.repositories) == {"a", "b", "c"}
    for row in snapshot.repositories.values():
        assert row.mode == "restore"
        # A graph is there, but it was made from something else.
        assert row.plan_fingerprints["graph"].startswith("restored-")
        assert set(row.rule_fingerprints) == {"extract", "normalize", "relate"}
    request = order(lake.root, lake.put(2))
    steps = plan(request, Progress(io.StringIO())).steps
    assert {step.name: {each.action for each in step.repositories} for step in steps} == {
        "extract": {"skip"},
        "normalize": {"skip"},
        "relate": {"skip"},
        "graph": {"run"},
    }


@pytest.mark.parametrize(
    ("name", "redone"),
    [
        ("repo_files_v1", ("extract", "normalize", "relate", "graph")),
        ("diagnostics_norm_v1", ("normalize", "graph")),
        (RELATIONS, ("relate", "graph")),
    ],
)
def test_steps_that_follow_are_done_again(lake: ThreeRuns, name: str, redone: tuple[str, ...]) -> None:
    version = newest_version(str(lake.root), name)
    old = next(each for each in range(version) if not have_same_content(str(lake.root), name, each, version))
    assert lake.restore_table(name, old).redone == redone
    assert not counted(lake.root)


@pytest.mark.system
def test_a_whole_run_after_a_table_alone(lake: ThreeRuns) -> None:
    """The steps that were forgotten are known again."""
    before = rows(lake.root)
    lake.restore_table(NODES, lake.version(NODES, 0))
    lake.restore(lake.runs[2])
    assert rows(lake.root) == before
    assert lake.build(2).status == "unchanged"


def test_failures_alone(lake: ThreeRuns) -> None:
    """If those of the published rows are there, nothing is to be done again; else they are made again."""
    complaints = failures(str(lake.root))
    last, first = lake.version(ERRORS, 2), lake.version(ERRORS, 0)
    DeltaTable(location(str(lake.root), ERRORS)).delete()
    assert lake.restore_table(ERRORS, last).redone == ()
    assert failures(str(lake.root)).rows == complaints.rows
    assert not counted(lake.root)
    assert lake.build(2).status == "unchanged"
    assert lake.restore_table(ERRORS, first).redone == ("extract", "normalize", "relate", "graph")
    assert not counted(lake.root)


def test_tables_that_no_run_pins_are_brought_back_and_that_is_all(lake: ThreeRuns) -> None:
    name, runs = "refresh_impact", read_manifest(str(lake.root))
    versions = newest_version(str(lake.root), name)
    count = len(light_table(str(lake.root), name, ["run_id"], version=versions - 1))
    report = lake.restore_table(name, versions - 1)
    assert (report.run_id, report.redone, report.repositories) == (lake.runs[2], (), ())
    assert len(light_table(str(lake.root), name, ["run_id"])) == count
    assert read_manifest(str(lake.root)) == runs
    assert lake.restore_table(name, versions - 1).status == "unchanged"


def test_by_a_time(lake: ThreeRuns) -> None:
    then = Snapshot.open(str(lake.root), lake.runs[1])
    moment = then.published_at.isoformat()
    report = lake.restore_table(NODES, moment)
    assert report.tables[0].restored_version == then.pins[NODES].version
    assert lake.restore_table("plan_artifacts", moment).tables[0].restored_version is not None
    assert lake.restore(moment).restored_run == lake.runs[1]
    with pytest.raises(UsageError, match="plan_artifacts did not exist at 2020-01-01"):
        lake.restore_table("plan_artifacts", "2020-01-01")
    with pytest.raises(TableMissing, match="nothing was published by 2020-01-01"):
        lake.restore_table(NODES, "2020-01-01")


def test_rows_of_a_repository_that_is_gone_are_noted(lake: ThreeRuns) -> None:
    version = lake.version(NODES, 2)
    lake.restore(lake.runs[0])
    assert lake.restore_table(NODES, version).notes == (
        "it has rows of c too, which the lake does not have now",
    )


# What cannot be restored


def vacuumed(lake: ThreeRuns, name: str) -> set[str]:
    """Delete the data files of a table that its newest version does not need; returns their paths."""
    place = location(str(lake.root), name)
    kept = replay_log(place, newest_version(str(lake.root), name)).adds
    gone = [path for path in Path(place).rglob("*.parquet") if "_delta_log" not in path.parts]
    gone = [path for path in gone if str(path.relative_to(place)) not in kept]
    for path in gone:
        path.unlink()
    return {str(path.relative_to(place)) for path in gone}


@pytest.mark.system
def test_of_a_vacuumed_run_nothing_is_changed(lake: ThreeRuns) -> None:
    before, versions = rows(lake.root), newest(lake)
    gone, version = vacuumed(lake, NODES), lake.version(NODES, 0)
    with pytest.raises(VersionGone) as caught:
        lake.restore(lake.runs[0])
    message = caught.value.message
    assert f"run {lake.runs[0]} cannot be restored: version {version} of {NODES}" in message
    adds = replay_log(location(str(lake.root), NODES), version).adds
    lost = gone & adds.keys()
    assert f"{len(lost)} of its {len(adds)} files are missing" in message
    assert any(f"such as {path};" in message for path in lost)
    left = [each for each in range(versions[NODES] + 1) if not missing_files(str(lake.root), NODES, each)]
    assert version not in left
    assert message.endswith(f"versions that are left: {left[0]} to {left[-1]}")
    assert (caught.value.code, caught.value.exit_code) == ("CA047", 6)
    assert (newest(lake), rows(lake.root)) == (versions, before)
    # What is left can be had.
    assert lake.restore(lake.runs[2]).status == "unchanged"


def test_a_vector_that_is_gone(lake: ThreeRuns) -> None:
    name = "ast_files_v1"
    place = location(str(lake.root), name)
    for add in replay_log(place, lake.version(name, 1)).adds.values():
        if add.deletion_vector is not None:
            Path(str(vector_file(place, add.deletion_vector))).unlink()
    with pytest.raises(VersionGone, match=r"1 of its . files is missing, such as deletion_vector_"):
        lake.restore(lake.runs[1])
    assert lake.restore(lake.runs[0]).status == "restored"


def test_a_log_that_is_gone(lake: ThreeRuns) -> None:
    root, place = str(lake.root), location(str(lake.root), NODES)
    last = newest_version(root, NODES)
    DeltaTable(place).create_checkpoint()
    for version in range(last):
        entry_path(place, version).unlink()
    with pytest.raises(VersionGone, match=rf"entries of its log .* that are left: {last}\n"):
        require_readable(root, NODES, 0)
    require_readable(root, NODES, last)
    with pytest.raises(VersionGone, match="cannot be restored"):
        lake.restore(lake.runs[0])


def test_a_version_that_never_was(lake: ThreeRuns) -> None:
    last = newest_version(str(lake.root), NODES)
    with pytest.raises(VersionGone, match=rf"there is no version 99 of .*: the newest is {last}"):
        lake.restore_table(NODES, 99)
    with pytest.raises(UsageError, match="'-1' is neither a version nor a time"):
        lake.restore_table(NODES, "-1")
    shutil.rmtree(location(str(lake.root), NODES))
    with pytest.raises(VersionGone, match="the table does not exist"):
        lake.restore_table(NODES, 0)


def test_runs_that_are_not_there(lake: ThreeRuns, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="20991231T"):
        lake.restore("20991231T")
    with pytest.raises(TableMissing, match="nothing was published by"):
        lake.restore("2020-01-01T00:00Z")
    with pytest.raises(TableMissing, match="a lake was never written"):
        restored(tmp_path / "nowhere", "latest")
    assert not (tmp_path / "nowhere").exists()
    # A time that is still to come means the newest.
    assert lake.restore("2999-01-01").status == "unchanged"


def test_a_failed_run_has_nothing_to_restore(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.publish("one", {"a": {}}, calls=[("a", "m.f", "m.g")])
    made.fail("two", {"a": "disk full"})
    with pytest.raises(TableMissing, match="run two has published nothing"):
        restored(tmp_path, "two")


@pytest.mark.parametrize("name", ["run_manifest", "run_lease"])
def test_what_a_restore_is_recorded_in_is_refused(lake: ThreeRuns, name: str) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        lake.restore_table(name, 0)
    assert "--run" in caught.value.hint


# As users call it


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("cpg_nodes",),
        ("--to", "1"),
        ("cpg_nodes", "--run", "latest"),
        ("cpg_nodes", "--run", "latest", "--to", "1"),
        ("--run", "latest", "--to", "1"),
    ],
)
def test_either_a_run_or_a_table(made: ThreeRuns, call: RunCommand, args: tuple[str, ...]) -> None:
    code, out, err = call("restore", "--lake", str(made.root), *args)
    assert (code, out) == (2, "")
    assert "give either --run RUN, or TABLE and --to VERSION" in err


def test_the_command(lake: ThreeRuns, call: RunCommand) -> None:
    root = str(lake.root)
    code, out, err = call("restore", "--lake", root, "--run", lake.runs[0])
    assert code == 0
    assert NODES in out
    assert f"run {lake.runs[0]} restored by run" in err
    assert "missing until they are built again: c" in err
    code, out, _ = call("restore", "--lake", root, "--run", lake.runs[0], "--format", "json")
    assert (code, json.loads(out)["status"]) == (0, "unchanged")
    code, out, err = call("restore", NODES, "--lake", root, "--to", str(lake.version(NODES, 1)))
    assert code == 0
    assert "the next build repeats: graph" in err
    code, out, err = call("restore", NODES, "--lake", root, "--to", "99")
    assert (code, out) == (6, "")
    assert "[CA047] there is no version 99" in err
    assert call("restore", "no_such", "--lake", root, "--to", "0")[0] == 2
    held: Callable[..., Any] = acquire(
        root, "other", ["a"], wait=False, report=print, base_run_id=None
    ).release
    code, _, err = call("restore", "--lake", root, "--run", lake.runs[2], "--no-wait")
    assert code == 5
    assert "being written by run other" in err
    held(keep_journal=False)
    code, out, _ = call("status", "--lake", root, "--format", "json")
    assert [row["repo_id"] for row in json.loads(out)["repositories"]] == ["a", "b"]
    assert call("runs", "--lake", root)[0] == 0
    assert call("runs", "show", "latest", "--lake", root)[0] == 0
