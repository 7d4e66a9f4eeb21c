"""Readers see what one run has published, whatever was written since; and failures and call graphs of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable

from codeanatomy.errors import StorageFailure, TableMissing, UnknownName, UsageError
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.query.checks.callgraph import call_graphs
from codeanatomy.query.status.failures import failures
from support.commands import RunCommand, command_runner
from support.small_lakes import ERRORS, HASH, MINUTE, NOON, RELATIONS, SmallLake

FIRST, SECOND, THIRD = "20260501T115930Z-aaaa", "20260501T120030Z-bbbb", "20260501T120130Z-cccc"
BROKEN = "20260501T120230Z-dddd"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Three runs of two repositories, and one that has failed."""
    made = SmallLake(tmp_path_factory.mktemp("lake"))
    made.publish(
        FIRST,
        {"a": {"error_counts": {"ast_files_v1": 1}}},
        calls=[("a", "m.f", "m.g")],
        errors=[("a", "bad.py", "one")],
    )
    made.publish(SECOND, {"b": {}}, calls=[("a", "m.f", "m.g"), ("b", "n.f", "n.g")])
    made.publish(
        THIRD,
        {"a": {"git_commit": "c" * 40}},
        calls=[("a", "m.f", "m.h"), ("b", "n.f", "n.g")],
        failed={"b": "cannot be opened"},
    )
    made.fail(BROKEN, {"a": "disk full", "b": "disk full"})
    return made


@pytest.fixture
def lake(written: SmallLake, tmp_path: Path) -> SmallLake:
    """A copy to be written to."""
    return written.copied(tmp_path / "lake")


def callees(lake: Snapshot) -> set[str]:
    return {row["dst_qname"] for row in lake.rows(RELATIONS, ["dst_qname"]).to_pylist()}


# Which run


def test_the_newest_published_run_is_opened(lake: SmallLake) -> None:
    found = Snapshot.open(str(lake.root))
    assert (found.run_id, found.published_at) == (THIRD, NOON + 2 * MINUTE)
    assert {name: row.run_id for name, row in found.repositories.items()} == {"a": THIRD, "b": SECOND}
    assert found.repositories["a"].git_commit == "c" * 40
    assert {name: pin.version for name, pin in found.pins.items()} == {ERRORS: 2, RELATIONS: 2}
    assert callees(found) == {"m.h", "n.g"}


def test_what_nobody_has_published_is_not_seen(lake: SmallLake) -> None:
    before = Snapshot.open(str(lake.root))
    lake.write(RELATIONS, [], "overwrite")
    assert callees(before) == callees(Snapshot.open(str(lake.root))) == {"m.h", "n.g"}
    assert sum(file.rows or 0 for file in before.files(RELATIONS)) == 2


@pytest.mark.parametrize(
    ("as_of", "run_id"),
    [
        (FIRST, FIRST),
        (SECOND, SECOND),
        ("20260501T1159", FIRST),
        ("20260501T12003", SECOND),
        ("2026-05-01T12:00:00Z", FIRST),
        ("2026-05-01T12:00:59Z", FIRST),
        ("2026-05-01T14:01+02:00", SECOND),
        ("2026-05-01T12:01:00.5Z", SECOND),
        # Without a zone it is UTC.
        ("2026-05-01 12:01", SECOND),
        ("2026-05-02", THIRD),
        ("2030-01-01T00:00Z", THIRD),
    ],
)
def test_a_run_or_a_time_is_opened(lake: SmallLake, as_of: str, run_id: str) -> None:
    found = Snapshot.open(str(lake.root), as_of)
    assert found.run_id == run_id
    assert ("b" in found.repositories) is (run_id != FIRST)
    assert found.repositories["a"].run_id == (THIRD if run_id == THIRD else FIRST)
    assert callees(found) == {FIRST: {"m.g"}, SECOND: {"m.g", "n.g"}, THIRD: {"m.h", "n.g"}}[run_id]


def test_a_run_belongs_to_the_second_in_which_it_ended(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.publish("one", {"a": {"finished_at": NOON + timedelta(seconds=5, milliseconds=700)}})
    assert Snapshot.open(str(tmp_path), "2026-05-01T12:00:05Z").run_id == "one"


def test_runs_are_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    """The run that began first had to wait for the other."""
    made = SmallLake(tmp_path)
    made.publish("z", {"a": {"started_at": NOON - 2 * MINUTE}})
    made.publish("a", {"a": {"started_at": NOON - 3 * MINUTE}})
    assert [run.run_id for run in recorded_runs(str(tmp_path))] == ["z", "a"]
    assert Snapshot.open(str(tmp_path)).run_id == "a"


# What cannot be opened


def test_an_unknown_run_names_the_newest(lake: SmallLake) -> None:
    with pytest.raises(UnknownName, match="unknown run 'x'") as problem:
        Snapshot.open(str(lake.root), "x")
    assert THIRD in problem.value.hint
    for empty in ("", "\x1b"):
        with pytest.raises(UnknownName):
            Snapshot.open(str(lake.root), empty)


def test_the_first_characters_of_several_runs_name_none(lake: SmallLake) -> None:
    with pytest.raises(UnknownName, match="3 begin with '20260501T12'") as problem:
        Snapshot.open(str(lake.root), "20260501T12")
    assert FIRST not in problem.value.hint
    assert all(name in problem.value.hint for name in (SECOND, THIRD, BROKEN))


def test_a_name_that_begins_another_is_itself(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    made.publish("run-1", {"a": {}})
    made.publish("run-10", {"a": {}})
    assert Snapshot.open(str(tmp_path), "run-1").run_id == "run-1"


def test_a_run_that_failed_cannot_be_opened(lake: SmallLake) -> None:
    with pytest.raises(TableMissing, match="has published nothing: 'disk full'"):
        Snapshot.open(str(lake.root), BROKEN)


def test_a_time_before_the_first_run(lake: SmallLake) -> None:
    with pytest.raises(TableMissing, match="nothing was published by 2026-05-01T00:00") as problem:
        Snapshot.open(str(lake.root), "2026-05-01")
    assert "2026-05-01T12:00:00Z" in problem.value.hint


@pytest.mark.parametrize("text", ["2026-05-01T99:00Z", "2026-13-01", "2026-05-01 noon"])
def test_what_is_no_time_is_refused(lake: SmallLake, text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        Snapshot.open(str(lake.root), text)


def test_a_lake_without_a_published_run(tmp_path: Path) -> None:
    with pytest.raises(TableMissing, match="never written"):
        Snapshot.open(str(tmp_path / "nowhere"))
    made = SmallLake(tmp_path)
    made.fail("one", {"a": "no"})
    with pytest.raises(TableMissing, match="no build has succeeded"):
        Snapshot.open(str(tmp_path))


def test_unknown_repositories_and_tables(lake: SmallLake) -> None:
    found = Snapshot.open(str(lake.root))
    with pytest.raises(UnknownName, match="unknown repository 'c'"):
        found.select_repositories("c")
    with pytest.raises(TableMissing, match="cpg_nodes is not published"):
        found.rows("cpg_nodes", ["node_id"])


def test_files_that_were_cleaned_away(lake: SmallLake) -> None:
    old, new = Snapshot.open(str(lake.root), FIRST), Snapshot.open(str(lake.root))
    table = DeltaTable(str(lake.place(RELATIONS)))
    removed = table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert removed
    with pytest.raises(
        TableMissing, match=rf"run {FIRST} cannot be read any more: version 0 of {RELATIONS} "
    ) as problem:
        callees(old)
    assert "open a newer run" in problem.value.hint
    assert "\x1b" not in str(problem.value)
    assert callees(new) == {"m.h", "n.g"}


def test_log_entries_that_were_cleaned_away(lake: SmallLake) -> None:
    old, new = Snapshot.open(str(lake.root), SECOND), Snapshot.open(str(lake.root))
    DeltaTable(str(lake.place(RELATIONS))).create_checkpoint()
    for version in (0, 1):
        (lake.place(RELATIONS) / "_delta_log" / f"{version:020}.json").unlink()
    for read in (callees, lambda one: one.files(RELATIONS)):
        with pytest.raises(TableMissing, match="cannot be read any more"):
            read(old)
    assert callees(new) == {"m.h", "n.g"}


def test_a_broken_file_is_not_taken_for_one_that_was_cleaned_away(lake: SmallLake) -> None:
    for file in Snapshot.open(str(lake.root)).files(RELATIONS):
        (lake.place(RELATIONS) / file.path).write_bytes(b"nothing")
    with pytest.raises(StorageFailure):
        callees(Snapshot.open(str(lake.root)))


# What is read through it


def test_call_graphs_are_those_of_the_opened_run(lake: SmallLake) -> None:
    newest = call_graphs(str(lake.root))
    assert newest.calls == {"a": {"m.f": ["m.h"]}, "b": {"n.f": ["n.g"]}}
    assert newest.outdated == ()
    assert call_graphs(str(lake.root), as_of=FIRST).calls == {"a": {"m.f": ["m.g"]}}
    assert call_graphs(str(lake.root), "b").calls == {"b": {"n.f": ["n.g"]}}
    with pytest.raises(UnknownName):
        call_graphs(str(lake.root), "b", as_of=FIRST)


def test_a_repository_without_relations_is_told(lake: SmallLake) -> None:
    lake.publish("four", {"b": {"plan_fingerprints": {"extract": HASH}}}, calls=[("a", "m.f", "m.g")])
    assert call_graphs(str(lake.root)).outdated == ("b",)


def test_failures_of_the_newest_builds(lake: SmallLake) -> None:
    found = failures(str(lake.root))
    assert [(row.repo_id, row.extractor, row.message) for row in found.rows] == [
        ("a", "build", "disk full"),
        ("b", "build", "disk full"),
    ]
    assert found.runs == {"a": BROKEN, "b": BROKEN}
    third = failures(str(lake.root), as_of=THIRD)
    assert [(row.repo_id, row.message) for row in third.rows] == [("b", "cannot be opened")]
    first = failures(str(lake.root), as_of="2026-05-01T12:01Z")
    assert [(row.repo_id, row.place, row.message) for row in first.rows] == [("a", "bad.py", "one")]
    assert failures(str(lake.root), limit=1).total == 2
    assert len(failures(str(lake.root), limit=100).rows) == 2
    assert failures(str(lake.root), as_of=SECOND, limit=1).rows == first.rows
    assert failures(str(lake.root), "b", as_of=SECOND, limit=1).rows == ()
    with pytest.raises(UnknownName):
        failures(str(lake.root), "c")


def test_failures_are_those_of_the_run_that_read_the_files(tmp_path: Path) -> None:
    """A repository whose files have not changed is not read again, and its failures are those of before."""
    made = SmallLake(tmp_path)
    counts = {"error_counts": {"ast_files_v1": 1}}
    made.publish("one", {"a": counts, "b": counts}, errors=[("a", "a.py", "old"), ("b", "b.py", "old")])
    made.publish(
        "two",
        {"a": {**counts, "artifact_ids": {"extract": "one/extract"}}, "b": counts},
        errors=[("b", "b.py", "new")],
    )
    assert [(row.repo_id, row.message) for row in failures(str(tmp_path)).rows] == [
        ("a", "old"),
        ("b", "new"),
    ]
    made.fail("three", {"a": "stopped"}, status="cancelled")
    assert [(row.repo_id, row.error_type, row.message) for row in failures(str(tmp_path)).rows] == [
        ("a", "cancelled", "stopped"),
        ("a", "SyntaxError", "old"),
        ("b", "SyntaxError", "new"),
    ]


def test_failures_where_nothing_was_ever_built(tmp_path: Path) -> None:
    SmallLake(tmp_path).fail("one", {"a": "no"})
    for limit in (None, 1, 100):
        assert [row.message for row in failures(str(tmp_path), limit=limit).rows] == ["no"]


# The commands


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_the_reading_commands_have_an_as_of(lake: SmallLake, run: RunCommand) -> None:
    code, out, _ = run("callgraph", "--lake", str(lake.root), "--as-of", FIRST, "--format", "json")
    assert (code, msgspec.json.decode(out)) == (0, {"m.f": ["m.g"]})
    code, out, _ = run("errors", "--lake", str(lake.root), "--as-of", "2026-05-01T12:00Z", "--format", "json")
    assert [row["detail"] for row in msgspec.json.decode(out)["rows"]] == ["one"]
    code, out, err = run("verify", "--lake", str(lake.root), "--as-of", FIRST)
    assert (code, out) == (6, "")
    assert "last built without it" in err


@pytest.mark.parametrize("command", ["callgraph", "errors", "verify", "status"])
def test_the_reading_commands_refuse_what_is_not_there(
    lake: SmallLake, run: RunCommand, command: str
) -> None:
    for as_of, code in (("2026-05-01", 6), ("x", 2), ("2026-05-01T1", 2)):
        done, out, err = run(command, "--lake", str(lake.root), "--as-of", as_of, "--format", "table")
        assert (done, out) == (code, "")
        assert "Traceback" not in err


def test_hostile_texts_command_no_terminal(tmp_path: Path, run: RunCommand) -> None:
    made = SmallLake(tmp_path / "lake")
    text = "\x1b[31mred\x1b[0m [bold]x[/bold]\n\u202e"
    counts = {"error_counts": {"ast_files_v1": 1}}
    made.publish("one", {"a": counts}, errors=[("a", text, text)])
    made.fail("two", {"a": text})
    for args in (
        ("errors",),
        ("errors", "--as-of", "one"),
        ("status",),
        ("status", "--as-of", "one"),
        ("status", "--as-of", "two"),
        ("runs",),
        ("runs", "show", "two"),
    ):
        _, out, err = run(*args, "--lake", str(tmp_path / "lake"))
        assert not {"\x1b", "\u202e"} & {*out, *err}
    assert "[bold]x[/bold]" in run("errors", "--lake", str(tmp_path / "lake"), "--format", "table")[1]
