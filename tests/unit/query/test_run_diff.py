"""What differs between two runs: nodes and edges that are new, gone or other than they were."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.errors import TableMissing, UnknownName, UsageError
from codeanatomy.node_ids import ID_VERSION
from codeanatomy.query.diff.run_diff import ElementChange, KindCount, RunDiff, ValueChange, diff_runs
from support.commands import RunCommand, command_runner
from support.light_builds import clean_lake, refreshed
from support.tiny_graph import (
    ARGUMENT,
    CALL,
    FUNCTION,
    PARAMETER,
    REPO,
    RUN,
    A,
    B,
    Tables,
    derived,
    edge,
    healthy,
    made,
    manifest,
    node,
    one,
    prop,
    write,
)

NODES, EDGES, PROPS = "cpg_nodes", "cpg_edges", "cpg_props"
NEW = made("class", "new")
END = made("ts_missing", "end")
CALLS = edge("CALLS", CALL, FUNCTION)["edge_id"]


def named() -> Tables:
    """The first run: its functions have names."""
    tables = healthy()
    one(tables[NODES], node_id=FUNCTION).update(name="f", qualname="a.f")
    one(tables[NODES], node_id=PARAMETER).update(name="x", qualname="a.f.x")
    return tables


def changed() -> Tables:
    """The second run: `f` has moved, a class is new, an error is gone, and some are other than before."""
    tables = named()
    one(tables[NODES], node_id=FUNCTION).update(bstart=1, bend=15, line=2)
    one(tables[EDGES], edge_kind="HAS_PARAMETER").update(bstart=7, bend=8, line=2)
    tables[NODES].append(node(NEW, "CLASS", B, (0, 0), name="New", qualname="b.New"))
    tables[NODES].remove(one(tables[NODES], node_id=END))
    tables[EDGES].remove(one(tables[EDGES], dst_node_id=END))
    one(tables[NODES], node_id=ARGUMENT).update(bend=19, name="one")
    one(tables[EDGES], edge_id=CALLS).update(confidence=0.5)
    for row in tables[PROPS]:
        if row["prop_key"] == "has_default":
            row["value_bool"] = True
        elif row["prop_key"] == "cut":
            row["value_string"] = "few"
    tables[PROPS].append(prop(one(tables[NODES], node_id=A), "encoding", "utf-8"))
    return tables


def publish(lake: Path, tables: Tables, run_id: str, minute: int, mode: str, **cells: Any) -> None:
    """A run that writes these tables, and leaves the others as they are."""
    write(lake, tables, mode)
    places = {table.name: lake / table.path for table in catalog.TABLES if table.stage != "meta"}
    there = {name: place for name, place in places.items() if place.exists()}
    pins = [
        {"table_name": name, "version": DeltaTable(str(place)).version()} for name, place in there.items()
    ]
    times = {
        "started_at": datetime(2026, 1, 1, 0, minute - 1, tzinfo=UTC),
        "finished_at": datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
    }
    write(lake, {"run_manifest": [manifest({}, run_id=run_id, output_pins=pins, **times, **cells)]})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("runs")
    write(lake, derived(named()))
    publish(lake, {name: changed()[name] for name in (NODES, EDGES, PROPS)}, "run-2", 2, "overwrite")
    return lake


def rows_of(found: RunDiff, kind: str) -> list[ElementChange]:
    return [row for row in found.rows if row.kind == kind]


def test_counts_by_kind_in_the_order_of_the_catalogue(lake: Path) -> None:
    found = diff_runs(str(lake), RUN)
    assert (found.run_a, found.run_b) == (RUN, "run-2")
    assert found.counts == (
        KindCount("node", "FILE", 0, 0, 1),
        KindCount("node", "MODULE", 0, 0, 2),
        KindCount("node", "CLASS", 1, 0, 0),
        KindCount("node", "FUNCTION", 0, 0, 1),
        KindCount("node", "PARAMETER", 0, 0, 1),
        KindCount("node", "ARGUMENT", 0, 0, 1),
        KindCount("node", "TS_MISSING", 0, 1, 0),
        KindCount("edge", "CALLS", 0, 0, 1),
        KindCount("edge", "HAS_DIAGNOSTIC", 0, 1, 0),
    )
    assert (found.total, found.cut, found.more, len(found.rows)) == (10, 0, None, 10)
    assert [row.kind for row in found.rows if row.path != "b.py"] == [
        each.kind for each in found.counts if each.kind != "CLASS"
    ]


def test_what_is_new_has_its_place_and_what_is_gone_the_one_it_had(lake: Path) -> None:
    found = diff_runs(str(lake), RUN)
    [new] = rows_of(found, "CLASS")
    assert new == ElementChange("added", "node", "CLASS", "b.New", "b.py", 1, None, {}, {}, None, REPO, NEW)
    [gone] = rows_of(found, "TS_MISSING")
    assert (gone.change, gone.symbol, gone.path, gone.line, gone.id) == ("removed", None, "a.py", 2, END)


def test_what_only_moved_is_the_same_and_a_changed_definition_tells_where_it_was(lake: Path) -> None:
    found = diff_runs(str(lake), RUN)
    [function] = rows_of(found, "FUNCTION")
    assert (function.change, function.symbol, function.id) == ("changed", "a.f", FUNCTION)
    assert (function.line, function.was_line, function.differs) == (2, 1, {})
    # The edge of the call, which has the key of the function.
    assert (function.inside, function.detail) == ({"edge": 1}, "before: a.py:1, inside: 1 edge")
    assert rows_of(found, "HAS_PARAMETER") == []
    assert found.notes == ()


def test_what_changed_has_old_and_new_values_of_columns_and_properties(lake: Path) -> None:
    found = diff_runs(str(lake), RUN)
    [argument] = rows_of(found, "ARGUMENT")
    assert argument.differs == {"name": ValueChange(None, "one")}
    assert argument.detail == "name: null -> one"
    # The rows of these are the same in both runs.
    [parameter] = rows_of(found, "PARAMETER")
    assert (parameter.symbol, parameter.differs) == ("a.f.x", {"has_default": ValueChange(False, True)})
    [file] = rows_of(found, "FILE")
    assert (file.id, file.differs) == (A, {"encoding": ValueChange(None, "utf-8")})


def test_an_edge_is_called_by_its_ends(lake: Path) -> None:
    found = diff_runs(str(lake), RUN)
    [calls] = rows_of(found, "CALLS")
    assert (calls.change, calls.element, calls.symbol, calls.id) == (
        "changed",
        "edge",
        "CALLSITE -> a.f",
        CALLS,
    )
    assert calls.differs == {
        "confidence": ValueChange(1.0, 0.5),
        "cut": ValueChange("many", "few"),
    }
    [gone] = rows_of(found, "HAS_DIAGNOSTIC")
    assert (gone.change, gone.symbol, gone.path) == ("removed", "FILE -> TS_MISSING", "a.py")


def test_the_other_way_round_new_is_gone(lake: Path) -> None:
    there, back = diff_runs(str(lake), RUN), diff_runs(str(lake), "latest", RUN)
    assert (back.run_a, back.run_b) == ("run-2", RUN)
    swapped = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(row.id, swapped[row.change]) for row in back.rows} == {
        (row.id, row.change) for row in there.rows
    }


def test_a_run_and_itself(lake: Path) -> None:
    found = diff_runs(str(lake), "latest")
    assert (found.run_a, found.counts, found.rows, found.total) == ("run-2", (), (), 0)


def test_kinds_repositories_and_limits(lake: Path) -> None:
    everything = diff_runs(str(lake), RUN)
    some = diff_runs(str(lake), RUN, kinds=["function", "PARAMETER", "Calls"])
    assert [each.kind for each in some.counts] == ["FUNCTION", "PARAMETER", "CALLS"]
    assert all(row in everything.rows for row in some.rows)
    cut = diff_runs(str(lake), RUN, limit=4)
    assert (cut.rows, cut.total, cut.cut, cut.more) == (everything.rows[:4], 10, 6, "--limit 10")
    assert cut.counts == everything.counts
    assert diff_runs(str(lake), RUN, repo_id=REPO) == everything
    with pytest.raises(UnknownName, match="kind 'FUNKTION'"):
        diff_runs(str(lake), RUN, kinds=["funktion"])
    with pytest.raises(UnknownName, match="repository 'other'"):
        diff_runs(str(lake), RUN, repo_id="other")
    with pytest.raises(UsageError, match=r"--limit must be .*, got 0"):
        diff_runs(str(lake), RUN, limit=0)


def test_runs_are_named_by_their_beginning(lake: Path) -> None:
    with pytest.raises(UnknownName, match="2 begin with"):
        diff_runs(str(lake), "run-")
    with pytest.raises(UnknownName, match="unknown run 'gone'"):
        diff_runs(str(lake), RUN, "gone")
    assert diff_runs(str(lake), "2026-01-01T00:01Z").run_a == RUN


def test_data_files_of_both_runs_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, derived(named()))
    new = [node(NEW, "CLASS", B, (0, 0), name="New", qualname="b.New")]
    publish(tmp_path, {NODES: new}, "run-2", 2, "append")
    for name in (NODES, EDGES, PROPS):
        for file in light_files(str(tmp_path), name, 0):
            Path(location(str(tmp_path), name), file.path).unlink()
    assert [(row.change, row.symbol) for row in diff_runs(str(tmp_path), RUN).rows] == [("added", "b.New")]


def test_rows_that_a_deletion_vector_removes(tmp_path: Path) -> None:
    lake, table = LakeTables(str(tmp_path)), catalog.table(NODES)
    ordered = sorted(named()[NODES], key=lambda row: str(row["node_kind"]))
    batch = pa.RecordBatch.from_pylist(ordered, schema=arrow_schema(table))
    files = write_files(lake.location(NODES), table, [batch])
    commit_files(lake, NODES, files, [], Commit(RUN), by="owner_file_id")
    write(tmp_path, {name: rows for name, rows in derived(named()).items() if name != NODES})
    commit_files(lake, NODES, [], [B], Commit("run-2"), by="owner_file_id")
    publish(tmp_path, {}, "run-2", 2, "append")
    assert any(file.vector for file in light_files(str(tmp_path), NODES))
    gone = {row["node_id"]: row["node_kind"] for row in named()[NODES] if row["owner_file_id"] == B}
    for first, last, change in ((RUN, "run-2", "removed"), ("run-2", RUN, "added")):
        found = diff_runs(str(tmp_path), first, last)
        assert {row.id: row.kind for row in found.rows} == gone
        assert {(row.change, row.path) for row in found.rows} == {(change, "b.py")}
        [file] = diff_runs(str(tmp_path), first, last, kinds=["file"]).rows
        assert (file.change, file.id) == (change, B)


def test_runs_with_ids_of_two_versions_cannot_be_compared(tmp_path: Path) -> None:
    write(tmp_path, derived(named()))
    publish(tmp_path, {}, "run-2", 2, "append", id_version=ID_VERSION + 1)
    with pytest.raises(UsageError, match=r"ids of tiny are of version \d in run run-1, of version \d in run"):
        diff_runs(str(tmp_path), RUN)
    assert diff_runs(str(tmp_path), "run-2").total == 0


def test_a_run_without_a_graph_cannot_be_compared(tmp_path: Path) -> None:
    tables = named()
    write(tmp_path, {"repo_files_v1": tables["repo_files_v1"]})
    publish(tmp_path, {}, "run-1", 1, "append")
    with pytest.raises(TableMissing, match="cpg_props is not published"):
        diff_runs(str(tmp_path), "run-1")


BEFORE = """\
def stays():
    return 1

def goes():
    return stays()

def moves(x):
    return [y for y in x]

def operator(x):
    return x + 1

@sorted(key=lambda each: 1)
def decorated():
    return 1

class Box:
    def edited(self):
        return [k for k in (1, 2)]

    def same(self):
        return [k for k in (1, 2)]

    def outer(self):
        def inner():
            return lambda: 1
        return inner
"""
EDITS = {
    "goes": "comes",
    "def moves": "# One line further.\ndef moves",
    "x + 1": "x - 1",
    "each: 1": "each: 2",
    "[k for k in (1, 2)]\n\n    def same": "[-k for k in (1, 2)]\n\n    def same",
    "lambda: 1\n": "lambda: 3\n",
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A lake and its runs: the first build, edited code, moved code, and a file less."""
    folder = tmp_path_factory.mktemp("builds")
    source, lake = folder / "source", folder / "lake"
    source.mkdir()
    (source / "other.py").write_text("import m\n\nm.moves(2)\n")
    (source / "caller.py").write_text("import m\n\ndef call():\n    m.goes()\n")
    text = BEFORE
    (source / "m.py").write_text(text)
    runs = [clean_lake(lake, {"app": source}).run_id]
    for old, new in EDITS.items():
        assert old in text
        text = text.replace(old, new)
    for each in (text, f"# Two lines\n# further.\n{text}"):
        (source / "m.py").write_text(each)
        runs.append(refreshed(lake, {"app": source}).run_id)
    (source / "m.py").unlink()
    runs.append(refreshed(lake, {"app": source}).run_id)
    return str(lake), runs


def test_definitions_whose_code_changed(builds: tuple[str, list[str]]) -> None:
    lake, runs = builds
    found = diff_runs(lake, *runs[:2], kinds=["module", "class", "function", "call_graph"])
    assert [(row.change, row.symbol, row.was_line, row.line) for row in rows_of(found, "FUNCTION")] == [
        # The callee is gone: the code is the same, the edges are not.
        ("changed", "caller.call", 3, 3),
        ("added", "m.comes", None, 4),
        ("removed", "m.goes", None, 4),
        ("changed", "m.operator", 10, 11),
        ("changed", "m.<lambda1>", 13, 14),
        ("changed", "m.decorated", 14, 15),
        ("changed", "m.Box.edited", 18, 19),
        ("changed", "m.Box.outer", 24, 25),
        ("changed", "m.Box.outer.inner", 25, 26),
        ("changed", "m.Box.outer.inner.<lambda1>", 26, 27),
    ]
    [operator] = [row for row in found.rows if row.symbol == "m.operator"]
    assert (operator.inside, operator.detail) == ({"node": 1}, "before: m.py:10, inside: 1 node")
    assert [(row.change, row.symbol) for row in rows_of(found, "CLASS")] == [("changed", "m.Box")]
    assert [(row.change, row.symbol) for row in rows_of(found, "MODULE")] == [
        ("changed", "caller"),
        ("changed", "m"),
    ]
    assert {(row.change, row.symbol) for row in rows_of(found, "CALL_GRAPH")} == {
        ("removed", "m.goes -> m.stays"),
        ("added", "m.comes -> m.stays"),
        ("removed", "caller.call -> m.goes"),
    }


def test_code_that_only_moved_is_the_same(builds: tuple[str, list[str]]) -> None:
    lake, runs = builds
    found = diff_runs(lake, *runs[1:3])
    assert [(row.change, row.kind, row.path, set(row.differs)) for row in found.rows] == [
        ("changed", "FILE", "m.py", {"sha256", "size_bytes"})
    ]


def test_what_a_removed_file_had_is_removed(builds: tuple[str, list[str]]) -> None:
    lake, runs = builds
    found = diff_runs(lake, *runs[2:4], kinds=["module", "class", "function"])
    changes = {row.symbol: row.change for row in found.rows}
    assert {changes[name] for name in ("m", "m.Box", "m.stays", "m.Box.outer.inner")} == {"removed"}
    assert {name: change for name, change in changes.items() if change != "removed"} == {
        "caller": "changed",
        "caller.call": "changed",
        "other": "changed",
    }


def test_contents_of_definitions_are_what_is_listed(builds: tuple[str, list[str]]) -> None:
    """A module contains the changes of its file, but for those of itself and of the file."""
    lake, runs = builds
    everything = diff_runs(lake, *runs[:2], limit=10_000)
    for path, name in (("m.py", "m"), ("caller.py", "caller")):
        [module] = [row for row in rows_of(everything, "MODULE") if row.symbol == name]
        for element in ("node", "edge"):
            # Definitions that only contain changes have no row of their own that differs.
            listed = [
                row
                for row in everything.rows
                if (row.path, row.element) == (path, element)
                and row.kind not in ("FILE", "MODULE")
                and (row.differs or row.change != "changed")
            ]
            assert module.inside.get(element, 0) == len(listed), (path, element)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_the_command_in_all_formats(run: RunCommand, lake: Path) -> None:
    asked = ("diff", RUN, "latest", "--lake", str(lake), "--kind", "function", "--kind", "argument")
    code, out, err = run(*asked)
    told: dict[str, Any] = json.loads(out)
    assert (code, err, told["status"], told["total"]) == (0, "", "ok", 2)
    assert (told["rows"][0]["was_line"], told["rows"][0]["inside"]) == (1, {"edge": 1})
    assert told["rows"][1]["differs"]["name"] == {"was": None, "now": "one"}
    assert [json.loads(line) for line in run(*asked, "--format", "jsonl")[1].splitlines()] == told["rows"]
    code, out, err = run(*asked, "--format", "table", "--limit", "1")
    assert out.splitlines()[:3] == [
        "element  kind      added  removed  changed",
        "node     FUNCTION  0      0        1",
        "node     ARGUMENT  0      0        1",
    ]
    assert "changed  FUNCTION  a.py:2  a.f     before: a.py:1, inside: 1 edge" in out
    assert f"0 added, 0 removed, 2 changed from run {RUN} to run run-2, 1 not shown (--limit 2)" in err
    assert "- 0 added, 0 removed, 2 changed" in run(*asked, "--format", "markdown")[1]
    first, *_ = csv.DictReader(io.StringIO(run(*asked, "--format", "csv")[1]))
    assert (first["change"], first["path"], first["line"], first["id"]) == ("changed", "a.py", "2", FUNCTION)


def test_the_command_tells_why_there_is_no_answer(run: RunCommand, lake: Path) -> None:
    code, out, err = run("diff", "gone", "--lake", str(lake))
    assert (code, json.loads(out)["status"]) == (2, "error")
    assert "unknown run 'gone'" in err
