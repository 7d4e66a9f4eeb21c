"""Rows of tables that were inserted, removed or changed between two runs: the command and `Lake`."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.delta.log.replay import read_actions
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import FeedLost, FeedOutOfRange, TableMissing, UnknownName, UsageError
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.query.diff.change_windows import RunWindow, feed_tables, open_window
from codeanatomy.query.lake import Lake
from support.commands import RunCommand, command_runner
from support.light_builds import clean_lake, refreshed
from support.log_files import entry_path
from support.three_runs import ThreeRuns, copied, three_runs

FILES, RELATIONS = "repo_files_v1", "relations_v1"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    """Three runs: the second edits `a`, the third edits `b` and adds `c`."""
    return three_runs(tmp_path_factory)


@pytest.fixture
def ran(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def by_key(lake: ThreeRuns, name: str, run: str | None) -> dict[tuple[Any, ...], Row]:
    """The rows of a table as a run has published them, by primary key."""
    rows = Snapshot.open(str(lake.root), run).rows(name, catalog.table(name).column_names)
    keys = catalog.table(name).primary_key
    return {tuple(row[key] for key in keys): row for row in rows.to_pylist(maps_as_pydicts="strict")}


def expected(lake: ThreeRuns, name: str, run_a: str | None, run_b: str) -> list[Row]:
    """The changes between two runs, by comparing all of their rows."""
    was = {} if run_a is None else by_key(lake, name, run_a)
    now = by_key(lake, name, run_b)
    changes = [{"change": "removed", **was[key], "was": None} for key in was.keys() - now.keys()]
    changes += [{"change": "inserted", **now[key], "was": None} for key in now.keys() - was.keys()]
    for key in was.keys() & now.keys():
        differing = {column: was[key][column] for column in was[key] if was[key][column] != now[key][column]}
        if differing:
            changes.append({"change": "changed", **now[key], "was": differing})
    return sorted(changes, key=repr)


@pytest.mark.parametrize("name", feed_tables())
@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 2), (0, 2), (None, 0), (None, 2)])
def test_changes_are_what_differs_between_two_runs(
    made: ThreeRuns, name: str, first: int | None, last: int
) -> None:
    run_a = None if first is None else made.runs[first]
    found = Lake.open(made.root).changes(name, run_a or "2020-01-01", until=made.runs[last], limit=1000)
    assert sorted(found.rows, key=repr) == expected(made, name, run_a, made.runs[last])
    assert (found.total, found.cut, found.more) == (len(found.rows), 0, None)
    assert (found.run_a, found.run_b) == (run_a, made.runs[last])


def test_the_changes_of_files(made: ThreeRuns) -> None:
    found = Lake.open(made.root).changes(FILES, made.runs[0])
    assert [(row["change"], row["repo_id"], row["path"]) for row in found] == [
        ("removed", "a", "bad.py"),
        ("inserted", "a", "new.py"),
        ("changed", "a", "two.py"),
        ("changed", "b", "m.py"),
        ("inserted", "c", "p.py"),
    ]
    two = found.rows[2]
    assert two["was"].keys() == {"file_sha256", "size_bytes", "mtime_ns"}
    assert two["was"]["size_bytes"] != two["size_bytes"]
    assert found.columns == ("change", *catalog.table(FILES).column_names, "was")
    assert list(found.to_pandas()["path"]) == [row["path"] for row in found]


def test_one_repository_and_an_older_snapshot(made: ThreeRuns) -> None:
    lake = Lake.open(made.root)
    assert {row["repo_id"] for row in lake.changes(RELATIONS, made.runs[0], repo_id="b")} == {"b"}
    # An opened run is the end of the window.
    older = Lake.open(made.root, made.runs[1])
    assert {row["repo_id"] for row in older.changes(FILES, made.runs[0])} == {"a"}
    assert older.changes(FILES, made.runs[0], repo_id="b").total == 0


def test_counts_by_table_and_repository(made: ThreeRuns) -> None:
    lake = Lake.open(made.root)
    counts = lake.change_counts(made.runs[0])
    assert counts.tables == feed_tables()
    found = {(each.table, each.repo_id): structs.astuple(each)[2:] for each in counts.counts}
    assert found[FILES, "a"] == (1, 1, 1)
    assert found[FILES, "b"] == (0, 0, 1)
    assert found[FILES, "c"] == (1, 0, 0)
    for name in feed_tables():
        total = sum(sum(amounts) for (table, _), amounts in found.items() if table == name)
        assert total == lake.changes(name, made.runs[0]).total
    only_b = lake.change_counts(made.runs[0], repo_id="b").counts
    assert {each.repo_id for each in only_b} == {"b"}


def test_every_commit(made: ThreeRuns) -> None:
    found = Lake.open(made.root).changes(FILES, made.runs[0], every_commit=True)
    first, second = (made.version(FILES, run) + 1 for run in (0, 1))
    assert [
        (row["_commit_version"], row["path"], row["_change_type"])
        for row in found
        if row["repo_id"] in ("a", "b")
    ] == [
        (first, "bad.py", "delete"),
        (first, "new.py", "insert"),
        (first, "two.py", "delete"),
        (first, "two.py", "insert"),
        (second, "m.py", "delete"),
        (second, "m.py", "insert"),
    ]
    published = [run.finished_at for run in recorded_runs(str(made.root))]
    assert all(row["_commit_timestamp"] < published[1] for row in found if row["repo_id"] == "a")


def test_pages(made: ThreeRuns) -> None:
    lake = Lake.open(made.root)
    for every_commit in (False, True):
        whole = lake.changes(RELATIONS, made.runs[0], limit=1000, every_commit=every_commit)
        pages: list[Row] = []
        offset = 0
        while True:
            page = lake.changes(RELATIONS, made.runs[0], limit=20, offset=offset, every_commit=every_commit)
            assert page.total == whole.total > 40
            pages += page.rows
            offset += 20
            if not page.cut:
                break
            assert page.more == f"--offset {offset}"
        assert pages == list(whole.rows)
        assert lake.changes(RELATIONS, made.runs[0], offset=5000).rows == ()


def test_rows_that_were_written_again_have_not_changed(tmp_path: Path, made: ThreeRuns) -> None:
    """A build of all files deletes and inserts the rows of files that have not changed."""
    lake = copied(tmp_path, made)
    source = lake.put(2)["b"]
    Path(source, "n.py").write_text("z = (1 2)\n# another line\n")
    refreshed(lake.root, {"b": source}, full=True, engine="local")
    opened = Lake.open(lake.root)
    written = opened.changes(RELATIONS, lake.runs[2], every_commit=True, limit=1000)
    types = Counter(row["_change_type"] for row in written if row["path"] == "m.py")
    assert types["insert"] == types["delete"] > 10
    assert {row["path"] for row in opened.changes(RELATIONS, lake.runs[2])} <= {"n.py"}
    times = {row["path"]: row["was"].keys() for row in opened.changes(FILES, lake.runs[2])}
    # The sources were written again, too.
    assert times.pop("m.py", {"mtime_ns"}) == {"mtime_ns"}
    assert times.keys() == {"n.py"}


def test_a_restored_run_undoes_changes(tmp_path: Path, made: ThreeRuns) -> None:
    lake = copied(tmp_path, made)
    lake.restore(lake.runs[0])
    opened = Lake.open(lake.root)
    for name in feed_tables():
        assert opened.changes(name, lake.runs[0]).total == 0
    back = opened.changes(FILES, lake.runs[2])
    assert {(row["change"], row["path"]) for row in back} == {
        ("inserted", "bad.py"),
        ("removed", "new.py"),
        ("changed", "two.py"),
        ("changed", "m.py"),
        ("removed", "p.py"),
    }


def test_a_lake_without_deletion_vectors(tmp_path: Path) -> None:
    """Its data files are rewritten, and commits have change files."""
    lake = ThreeRuns(tmp_path, ())
    for state in range(2):
        make = refreshed if state else clean_lake
        make(lake.root, {"a": lake.put(state)["a"]}, "delta.readers=all")
    runs = [run.run_id for run in recorded_runs(str(lake.root))]
    place = location(str(lake.root), RELATIONS)
    assert any(action.cdc for action in read_actions(place, 1))
    opened = Lake.open(lake.root)
    for name in feed_tables():
        page = opened.changes(name, runs[0], limit=1000)
        assert sorted(page.rows, key=repr) == expected(lake, name, runs[0], runs[1])
    commits = opened.changes(FILES, runs[0], every_commit=True)
    assert [(row["path"], row["_change_type"]) for row in commits] == [
        ("bad.py", "delete"),
        ("new.py", "insert"),
        ("two.py", "delete"),
        ("two.py", "insert"),
    ]


# Windows


def test_a_start_that_is_the_newest_run(made: ThreeRuns) -> None:
    lake = Lake.open(made.root)
    for start in (made.runs[2], "latest", "2999-01-01"):
        with pytest.raises(FeedOutOfRange, match=f"nothing was published after run {made.runs[2]}"):
            lake.changes(FILES, start)
        with pytest.raises(FeedOutOfRange):
            lake.change_counts(start)
        empty = lake.changes(FILES, start, allow_out_of_range=True)
        assert (empty.rows, empty.total, empty.first_version - empty.last_version) == ((), 0, 1)
        assert lake.change_counts(start, allow_out_of_range=True).counts == ()
    # A window between two names of the same run is empty.
    assert lake.changes(FILES, made.runs[1], until=made.runs[1]).total == 0


def test_windows_that_make_no_sense(made: ThreeRuns) -> None:
    lake, (one, two, _) = Lake.open(made.root), made.runs
    with pytest.raises(UsageError, match=f"run {two} was published after run {one}") as caught:
        lake.changes(FILES, two, until=one)
    assert "swap" in caught.value.hint
    with pytest.raises(UsageError, match="is after the end"):
        lake.changes(FILES, "2999-01-02", until="2999-01-01")
    with pytest.raises(UnknownName, match="unknown run 'nope'"):
        lake.changes(FILES, "nope")
    with pytest.raises(TableMissing, match="nothing was published by"):
        lake.changes(FILES, "2001-01-01", until="2002-01-01")
    with pytest.raises(UsageError, match="is not a time"):
        lake.changes(FILES, "2001-99-99")
    with pytest.raises(UnknownName, match="unknown repository 'z'"):
        lake.changes(FILES, one, repo_id="z")
    for limit, offset in ((0, 0), (1, -1), (2**31, 0)):
        with pytest.raises(UsageError):
            lake.changes(FILES, one, limit=limit, offset=offset)


def test_tables_without_a_feed(made: ThreeRuns) -> None:
    lake = Lake.open(made.root)
    with pytest.raises(UsageError, match="cpg_nodes records no change feed") as caught:
        lake.changes("cpg_nodes", made.runs[0])
    assert all(name in caught.value.hint for name in feed_tables())
    for name in ("run_manifest", "plan_artifacts"):
        with pytest.raises(UsageError, match="records no change feed"):
            lake.changes(name, made.runs[0])
    with pytest.raises(UnknownName, match="unknown table with a change feed") as unknown:
        lake.changes("x'; DROP", made.runs[0])
    assert FILES in unknown.value.hint


def test_a_window_that_was_vacuumed(tmp_path: Path, made: ThreeRuns) -> None:
    lake = copied(tmp_path, made)
    place = location(str(lake.root), FILES)
    version = lake.version(FILES, 1)
    (added,) = {each.add.path for each in read_actions(place, version) if each.add} - {
        each.add.path for each in read_actions(place, 0) if each.add
    }
    Path(place, added).unlink()
    opened = Lake.open(lake.root, lake.runs[0])
    with pytest.raises(FeedLost, match=f"version {version} of {FILES} was vacuumed") as caught:
        opened.changes(FILES, lake.runs[0], until=lake.runs[1])
    assert "choose a later start" in caught.value.hint
    with pytest.raises(FeedLost):
        opened.change_counts(lake.runs[0], until=lake.runs[1])
    # Later commits are complete, and so are those of other repositories.
    assert opened.changes(FILES, lake.runs[1], until=lake.runs[2], repo_id="b").total == 1
    DeltaTable(place).create_checkpoint()
    for number in range(version + 2):
        entry_path(place, number).unlink()
    with pytest.raises(FeedLost, match=f"has no entry for version {version + 1}"):
        opened.changes(FILES, lake.runs[1], until=lake.runs[2])


def test_a_table_that_was_recreated(made: ThreeRuns) -> None:
    window = open_window(str(made.root), made.runs[0], made.runs[2])
    assert window.before is not None
    swapped = RunWindow(window.after, window.before)
    with pytest.raises(FeedLost, match="the table was recreated"):
        swapped.versions(FILES)


# The command


def test_the_command_counts(made: ThreeRuns, ran: RunCommand) -> None:
    lake = ("--lake", str(made.root))
    code, table, note = ran("changes", "--since", made.runs[0], *lake, "--format", "table")
    assert code == 0
    assert table.splitlines()[0].split() == ["table", "repo_id", "inserted", "removed", "changed"]
    assert [FILES, "a", "1", "1", "1"] in [line.split() for line in table.splitlines()]
    assert f"from run {made.runs[0]} to run {made.runs[2]}" in note
    code, text, _ = ran("changes", "--since", made.runs[0], *lake)
    answer = json.loads(text)
    assert (code, answer["status"], answer["run_b"]) == (0, "ok", made.runs[2])
    assert {"table": FILES, "repo_id": "c", "inserted": 1, "removed": 0, "changed": 0} in answer["counts"]


def test_the_command_lists_rows_with_their_places(made: ThreeRuns, ran: RunCommand) -> None:
    ask = ("changes", RELATIONS, "--since", made.runs[0][:-1], "--repo", "c", "--lake", str(made.root))
    code, table, note = ran(*ask, "--format", "table", "--limit", "3")
    assert code == 0
    assert table.split("\n")[0].split() == ["change", "key", "place"]
    assert "p.py:1" in table
    assert "5 not shown (--offset 3)" in note
    code, lines, _ = ran(*ask, "--format", "jsonl")
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(rows) == 8
    assert {row["change"] for row in rows} == {"inserted"}
    code, text, _ = ran(*ask, "--format", "csv", "--all-commits")
    read = list(csv.DictReader(io.StringIO(text)))
    assert {row["_change_type"] for row in read} == {"insert"}
    assert json.loads(read[0]["evidence"])[0]["agrees"] is True
    code, text, _ = ran(*ask, "--format", "markdown", "--all-commits")
    assert text.startswith("| change | version | place | time | key |")
    code, text, _ = ran(
        "changes", FILES, "--since", made.runs[0], "--lake", str(made.root), "--format", "table"
    )
    assert "size_bytes: 22 -> 53" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("cpg_nodes", "--since", "2020-01-01"), 2, "records no change feed"),
        ((FILES, "--since", "nope"), 2, "unknown run 'nope'"),
        ((FILES, "--since", "latest"), 2, "nothing was published after"),
        ((FILES,), 2, "--since"),
        ((FILES, "--since", "2020-01-01", "--until", "2020-01-02"), 6, "nothing was published by"),
        (("--since", "2020-01-01", "--all-commits"), 2, "--all-commits needs a TABLE"),
        ((FILES, "--since", "2020-01-01", "--offset", "-1"), 2, "--offset"),
    ],
)
def test_errors_of_the_command(
    made: ThreeRuns, ran: RunCommand, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended, _, printed = ran("changes", *arguments, "--lake", str(made.root))
    assert (ended, message in printed) == (code, True), printed


def test_the_command_may_be_called_again_and_again(made: ThreeRuns, ran: RunCommand) -> None:
    ask = ("changes", FILES, "--since", "latest", "--lake", str(made.root))
    code, text, _ = ran(*ask, "--allow-out-of-range")
    assert (code, json.loads(text)["rows"]) == (0, [])
    code, text, _ = ran(*ask)
    assert (code, json.loads(text)["code"]) == (2, "CA050")
