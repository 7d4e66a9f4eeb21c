"""Questions that are recorded: what is kept of them, where, and what is not."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import json, structs

from codeanatomy import catalog
from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.cli.main import cli
from codeanatomy.config import load_settings
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.lake import recorded_queries as queries
from codeanatomy.lake.recorded_queries import (
    FOLDER,
    RecordedQuery,
    RecordedQuestion,
    record_queries,
    take_records,
)
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.activity import observe
from support.edits import write_tree
from support.light_builds import clean_lake

AT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def own_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small one, without Spark."""
    folder = tmp_path_factory.mktemp("recorded")
    write_tree(
        folder / "source",
        {
            "a.py": b"def wonderful():\n    return 1\n",
            "b.py": b"import a\n\n\nclass C:\n    def g(self):\n        return a.wonderful()\n",
        },
    )
    clean_lake(folder / "lake", {"app": folder / "source"})
    return folder / "lake"


@pytest.fixture
def lake(own_lake: Path) -> Path:
    shutil.rmtree(own_lake / FOLDER, ignore_errors=True)
    queries._spool_file.cache_clear()
    return own_lake


def read_queries(root: str) -> list[RecordedQuery]:
    """Return the queries of all processes, and keep the files."""
    return queries._sort(queries._read_files(queries._files(root))).queries


def take_queries(root: str) -> list[RecordedQuery]:
    """Take the records of all processes, and return the queries."""
    return take_records(root).queries


def recording(lake: Path) -> Lake:
    """The lake as the command line opens it when the setting is on."""
    return Lake.open(lake, record=partial(record_queries, str(lake)))


def spooled(lake: Path) -> list[Path]:
    return sorted((lake / FOLDER).glob("*")) if (lake / FOLDER).exists() else []


def a_function(lake: Path) -> str:
    row = Lake.open(lake).sql("SELECT callee FROM calls WHERE NOT external LIMIT 1").rows[0]
    return str(row["callee"])


def test_it_is_off_by_default(lake: Path) -> None:
    assert not load_settings(env={}, start=None).observe.record_queries
    opened = Lake.open(lake)
    opened.find("*")
    opened.sql("SELECT * FROM calls")
    assert spooled(lake) == []


def test_the_setting_is_shown() -> None:
    assert "record_queries=True" in repr(ObserveOptions(record_queries=True))
    assert load_settings(("observe.record_queries=true",), env={}, start=None).observe.record_queries


def test_a_verb_is_noted_with_its_columns_and_files(lake: Path) -> None:
    name = a_function(lake)
    answer = recording(lake).callers(name)
    assert answer.rows
    (file,) = spooled(lake)
    assert file.name.startswith(f"{os.getpid()}-")
    assert file.suffix == ".jsonl"
    found = take_queries(str(lake))
    assert found
    assert spooled(lake) == []
    assert {each.purpose for each in found} == {"callers"}
    edges = [each for each in found if each.table == "cpg_edges_by_dst"]
    assert any("dst_node_id" in each.filter_columns for each in edges)
    pins = Snapshot.open(str(lake)).pins
    for each in found:
        files = light_files(str(lake), each.table, each.version)
        assert each.version == pins[each.table].version
        assert each.total_files == len(files)
        assert 0 <= (each.candidate_files or 0) <= len(files)
        named = {*each.filter_columns, *each.join_columns, *each.projected_columns}
        assert named <= set(catalog.table(each.table).column_names)
    # The names of those who call are looked up by id.
    assert any("node_id" in each.filter_columns for each in found if each.table == "cpg_nodes")


def test_the_reading_side_only_hands_out_notes(lake: Path) -> None:
    """A recorder gets the notes; `query` itself writes nothing to the lake."""
    before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
    notes: list[RecordedQuery | RecordedQuestion] = []
    opened = Lake.open(lake, record=notes.extend)
    opened.callers(a_function(lake))
    opened.sql("SELECT caller FROM calls WHERE line > 2")
    assert {each.purpose for each in notes if isinstance(each, RecordedQuery)} == {"callers", "sql"}
    assert [each.verb for each in notes if isinstance(each, RecordedQuestion)] == ["callers", "sql"]
    assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before


def test_no_value_of_a_question_is_kept(lake: Path) -> None:
    secret = "nobody_may_know_that_I_ask_for_this"
    opened = recording(lake)
    opened.find(f"{secret}*")
    opened.sql(f"SELECT name FROM symbols WHERE path = '{secret}' OR name LIKE '{secret}%'")
    opened.callers(a_function(lake))
    kept = b"".join(file.read_bytes() for file in spooled(lake))
    assert kept
    for text in (secret, "wonderful", "a.py"):
        assert text.encode() not in kept
    assert b"IN (?)" in kept


def test_a_statement_is_noted_with_the_columns_of_tables(lake: Path) -> None:
    recording(lake).sql("SELECT caller FROM calls WHERE path = 'x.py' AND line > 2")
    found = take_queries(str(lake))
    assert {each.purpose for each in found} == {"sql"}
    (edges,) = [each for each in found if each.table == "cpg_edges"]
    assert {"edge_kind", "path", "line"} <= set(edges.filter_columns)
    assert {"src_node_id", "dst_node_id"} <= set(edges.join_columns)
    # Conditions of the statement are DuckDB's to push where a view is more than a table.
    assert edges.pushed_filters == ("edge_kind IN (?)",)
    assert (edges.candidate_files or 0) < (edges.total_files or 0)


def test_a_statement_over_a_whole_table_is_noted_with_the_files_it_was_spared(lake: Path) -> None:
    opened = recording(lake)
    opened.sql("SELECT name FROM nodes WHERE node_kind = 'CLASS' AND length(name) > 0")
    (found,) = take_queries(str(lake))
    *_, read = (each for each in opened.reader.scans if each.table == "cpg_nodes")
    assert (found.pushed_filters, found.filter_columns) == (("node_kind = ?",), ("node_kind",))
    assert (found.total_files, found.candidate_files) == (read.total_files, read.candidate_files)
    assert 0 < (found.candidate_files or 0) < (found.total_files or 0)


def test_a_question_leaves_its_cost(lake: Path) -> None:
    opened, name = recording(lake), a_function(lake)
    answer = opened.callers(name)
    opened.sql("SELECT caller FROM calls", limit=1)
    opened.errors()
    callers, sql, errors = take_records(str(lake)).questions
    assert (callers.verb, sql.verb, errors.verb) == ("callers", "sql", "errors")
    assert (errors.run_id, errors.files) == (callers.run_id, None)
    assert callers.run_id == sql.run_id == Snapshot.open(str(lake)).run_id
    assert (callers.rows, sql.rows) == (len(answer.rows), 1)
    assert 0 < callers.seconds < 60
    assert callers.at <= sql.at
    # Files are counted once, whatever the number of slices that read them.
    scans = {each.table for each in opened.reader.scans}
    files = {(table, file.path): file.size_bytes for table in scans for file in opened.snapshot.files(table)}
    assert 0 < (callers.files or 0) <= len(files)
    assert 0 < (callers.bytes or 0) <= sum(files.values())


def test_the_next_build_records_questions(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, tmp_path / "lake")
    own = tmp_path / "lake"
    recording(own).find("*")
    recording(own).sql("SELECT count(*) FROM calls")
    write_tree(tmp_path / "source", {"c.py": b"x = 1\n"})
    clean_lake(own, {"other": tmp_path / "source"})
    assert spooled(own) == []
    opened = Lake.open(own)
    found = opened.sql("SELECT verb, read_run_id, run_id, files, rows FROM questions ORDER BY event_no").rows
    before = Lake.open(lake).snapshot.run_id
    assert [(row["verb"], row["read_run_id"]) for row in found] == [("find", before), ("sql", before)]
    assert {row["run_id"] for row in found} == {opened.snapshot.run_id}
    assert all(row["files"] > 0 and row["rows"] > 0 for row in found)
    lines = observe(str(own), 10, "questions").questions
    assert {(line.verb, line.questions) for line in lines} == {("find", 1), ("sql", 1)}


def test_a_question_that_is_refused_is_not_noted(lake: Path) -> None:
    opened = recording(lake)
    for ask in (
        lambda: opened.sql("SELECT nme FROM symbols"),
        lambda: opened.callers("no_such_thing_at_all"),
    ):
        with pytest.raises(CodeAnatomyError):
            ask()
    assert spooled(lake) == []


def test_answers_are_the_same(lake: Path) -> None:
    name = a_function(lake)
    plain, recorded = Lake.open(lake), recording(lake)
    assert recorded.callers(name, depth=2) == plain.callers(name, depth=2)
    assert recorded.show(name) == plain.show(name)


def test_the_command_line_records_where_it_is_set(lake: Path) -> None:
    on = ("--set", "observe.record_queries=true")
    for flags, kept in (((), 0), (on, 1)):
        done = CliRunner().invoke(cli, [*flags, "find", "*", "--lake", str(lake)])
        assert done.exit_code == 0, done.output
        assert bool(take_queries(str(lake))) == bool(kept)
    done = CliRunner().invoke(cli, [*on, "sql", "SELECT count(*) FROM calls", "--lake", str(lake)])
    assert done.exit_code == 0, done.output
    assert take_queries(str(lake))


def test_a_lake_that_cannot_be_written_is_no_error(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> int:
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "open", refused)
    assert recording(lake).find("*").rows
    monkeypatch.undo()
    (lake / FOLDER).rmdir()
    # A file in the place of the folder.
    (lake / FOLDER).write_text("")
    queries._spool_file.cache_clear()
    try:
        assert recording(lake).find("*").rows
        assert take_queries(str(lake)) == []
    finally:
        (lake / FOLDER).unlink()


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "FILE_BYTES", 1_000)
    one = RecordedQuery(AT, "find", "cpg_nodes", 1)
    for _ in range(100):
        record_queries(str(tmp_path), [one])
    (file,) = spooled(tmp_path)
    assert 800 < file.stat().st_size <= 1_000
    (found,) = take_queries(str(tmp_path))
    assert 5 < found.count < 100


def test_so_is_the_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_FILES", 3)
    for process in range(10):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        record_queries(str(tmp_path), [RecordedQuery(AT, "find", "cpg_nodes", 1)])
    assert len(spooled(tmp_path)) == 3
    assert [each.count for each in take_queries(str(tmp_path))] == [3]


def test_what_is_read_of_all_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest files first; what was not read is gone all the same."""
    (tmp_path / FOLDER).mkdir(parents=True)
    for number in range(10):
        # The names are in the opposite order of time.
        file = tmp_path / FOLDER / f"{9 - number}-a.jsonl"
        file.write_bytes(json.encode(RecordedQuery(AT, "find", "cpg_nodes", number)) + b"\n")
        os.utime(file, (number, number))
    monkeypatch.setattr(queries, "ALL_BYTES", 3 * file.stat().st_size)
    assert sorted(each.version for each in read_queries(str(tmp_path))) == [7, 8, 9]
    monkeypatch.setattr(queries, "MAX_QUERIES", 2)
    assert sorted(each.version for each in take_queries(str(tmp_path))) == [8, 9]
    assert spooled(tmp_path) == []


def test_questions_that_differ_in_time_only_are_one(tmp_path: Path) -> None:
    one, other = (
        RecordedQuery(AT, "find", "cpg_nodes", 1),
        RecordedQuery(AT, "find", "cpg_nodes", 1, filter_columns=("path",)),
    )
    later = [structs.replace(one, at=AT.replace(hour=hour)) for hour in (5, 9, 7)]
    record_queries(str(tmp_path), [one, later[0], other, *later[1:]])
    assert take_queries(str(tmp_path)) == [other, structs.replace(one, at=AT.replace(hour=9), count=4)]


def test_what_lies_in_the_folder_is_not_trusted(tmp_path: Path) -> None:
    good = RecordedQuery(AT, "find", "cpg_nodes", 1, 4, 2, ("path IN (?)",), ("path",))
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    line = json.decode(json.encode(good))
    wrong: list[object] = [
        b"",
        b"null",
        b"[1, 2",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        {**line, "table": "no_such_table"},
        {**line, "table": 3},
        {**line, "version": -1},
        {**line, "version": 10**30},
        {**line, "at": "2026-05-01"},
        {**line, "at": "2026-05-01T12:00:00"},
        {**line, "purpose": "x" * 1000},
        {**line, "filter_columns": ["x" * 1000]},
        {**line, "filter_columns": ["x"] * 1000},
        {**line, "pushed_filters": ["x" * 5000]},
        {**line, "candidate_files": 9},
        {**line, "count": 0},
        {**line, "count": 10**9},
        {**line, "more": "fields"},
        {"at": line["at"], "verb": "find", "run_id": "r", "seconds": -1},
        {"at": line["at"], "verb": "find", "run_id": "r", "seconds": "much"},
        {"at": line["at"], "verb": "find", "run_id": "x" * 1000, "seconds": 1.0},
    ]
    lines = [each if isinstance(each, bytes) else json.encode(each) for each in wrong]
    (folder / "1-a.jsonl").write_bytes(b"\n".join([json.encode(good), *lines, json.encode(good), b'{"at":']))
    (folder / "2-b.jsonl").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(json.encode(good))
    (folder / "3-c.jsonl").symlink_to(elsewhere)
    os.mkfifo(folder / "4-d.jsonl")
    (folder / "other.txt").write_bytes(json.encode(good))
    twice = structs.replace(good, count=2)
    assert read_queries(str(tmp_path)) == [twice]
    assert take_queries(str(tmp_path)) == [twice]
    assert take_queries(str(tmp_path)) == []
    assert elsewhere.exists()
    assert (folder / "other.txt").exists()


def test_notes_of_several_processes_are_in_the_order_of_time(tmp_path: Path) -> None:
    for process, hour in (("1-a", 3), ("2-b", 1), ("3-c", 2)):
        each = RecordedQuery(AT.replace(hour=hour), "find", "cpg_nodes", hour)
        (tmp_path / FOLDER).mkdir(parents=True, exist_ok=True)
        (tmp_path / FOLDER / f"{process}.jsonl").write_bytes(json.encode(each) + b"\n")
    assert [each.version for each in read_queries(str(tmp_path))] == [1, 2, 3]
    assert [each.version for each in take_queries(str(tmp_path))] == [1, 2, 3]


def test_a_remote_lake_has_no_notes() -> None:
    record_queries("s3a://bucket/lake", [RecordedQuery(AT, "find", "cpg_nodes", 1)])
    assert read_queries("s3a://bucket/lake") == take_queries("s3a://bucket/lake") == []
