"""Why a run was slower: what `codeanatomy runs compare` finds in the records of two runs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.run_comparison import (
    LINE_COLUMNS,
    CostDifference,
    FactDifference,
    RunComparison,
    compare_runs,
    comparison_lines,
)
from support.commands import RunCommand, command_runner
from support.small_lakes import HASH, NOON, SmallLake

OTHER = HASH[::-1]
SCAN = "FileScan ast_files_v1 PushedFilters: [{}], ReadSchema: struct<path:string>"
PLAN_A = ("MapInArrow run(a)", "  Exchange hashpartitioning(repo_id, *)", "    " + SCAN.format("repo_id"))
PLAN_B = (
    "MapInArrow run(a)",
    "  Sort [repo_id ASC]",
    "    Exchange hashpartitioning(repo_id, *)",
    "      " + SCAN.format(""),
)


def cost(scope: str, step: str | None, name: str, seconds: float, rows: int | None = None) -> dict[str, Any]:
    figures = {"rows": rows, "bytes": None if rows is None else 10 * rows}
    return {"scope": scope, "step_name": step, "name": name, "seconds": seconds, **figures}


def frame(number: int, name: str, plan: tuple[str, ...], **rows: int) -> dict[str, Any]:
    """A frame, with the number of rows by line of its plan."""
    metrics = [
        {"operator_no": int(line[1:]), "operator": "x", "metric": "output_rows", "value": value}
        for line, value in rows.items()
    ]
    text = "\n".join(plan)
    return {
        "frame_no": number,
        "frame_name": name,
        "physical_plan": text,
        "plan_hash": f"{hash(text) & 0xFFFFFFFF:032x}",
        "operator_metrics": metrics,
        "duration_ms": 1000 * (number + 1),
    }


def record(lake: SmallLake, run_id: str, costs: list[dict[str, Any]], frames: list[dict[str, Any]]) -> None:
    root = str(lake.root)
    rows = [{"run_id": run_id, **each} for each in costs]
    append_small(root, catalog.table("run_costs"), rows, Commit(run_id))
    own = {"run_id": run_id, "event_time": NOON, "artifact_id": f"{run_id}/graph", "step_name": "graph"}
    step = {"duration_ms": 9000, "rows": 7}
    artifacts = [
        {**own, "event_no": number, "status": "succeeded", **each}
        for number, each in enumerate((step, *frames))
    ]
    append_small(root, catalog.table("plan_artifacts"), artifacts, Commit(run_id))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """A run, and one with another parser and another plan that took longer."""
    made = SmallLake(tmp_path_factory.mktemp("lake"))
    versions = {"ast_files_v1": "3.12.1/7", "libcst_files_v1": "1.8.2/4"}
    made.publish(
        "one",
        {
            "a": {
                "witness_versions": versions,
                "settings_hash": HASH,
                "settings": {"runtime.cores": "1"},
                "step_ms": {"list": 100, "record": 5, "graph_step": 2000},
            }
        },
    )
    made.publish(
        "two",
        {
            "a": {
                "witness_versions": {**versions, "libcst_files_v1": "1.8.6/4"},
                "settings_hash": OTHER,
                "settings": {"extract.partitions": "5", "runtime.cores": "2"},
                "step_ms": {"list": 100, "record": 5, "graph_step": 9000},
            }
        },
    )
    record(
        made,
        "one",
        [
            cost("part", None, "list", 0.1),
            cost("step", "graph", "graph", 2.0, 7),
            cost("rule", "graph", "rows_of_files", 1.5, 7),
            cost("extractor", "extract", "ast_files_v1", 0.5, 2),
            cost("table", "graph", "cpg_nodes", 0.02, 7),
        ],
        [frame(0, "graph rows", PLAN_A, n0=7, n2=3), frame(1, "shared rows", PLAN_A)],
    )
    record(
        made,
        "two",
        [
            cost("part", None, "list", 0.1),
            cost("step", "graph", "graph", 9.0, 9),
            cost("rule", "graph", "rows_of_files", 1.25, 9),
            cost("rule", "graph", "merge_shared_rows", 7.0),
            cost("extractor", "extract", "ast_files_v1", 0.5, 2),
            cost("table", "graph", "cpg_nodes", 0.02, 9),
        ],
        [
            frame(0, "graph rows", PLAN_B, n0=9, n1=9, n3=1000),
            frame(1, "shared rows", PLAN_A),
            frame(2, "tables", PLAN_A),
        ],
    )
    made.publish("three", {"a": {"step_ms": {"list": 300, "graph_step": 1000}}})
    return made


@pytest.fixture(scope="module")
def compared(lake: SmallLake) -> RunComparison:
    return compare_runs(str(lake.root), "one", "tw", limit=None)


def test_costs_side_by_side(compared: RunComparison) -> None:
    assert (compared.a.run_id, compared.b.run_id) == ("one", "two")
    assert compared.costs == (
        CostDifference("step", "graph", "graph", 2.0, 9.0, 7, 9, 70, 90),
        CostDifference("part", "", "list", 0.1, 0.1),
        # Only the manifest has it.
        CostDifference("part", "", "record", 0.005, 0.005),
        CostDifference("extractor", "extract", "ast_files_v1", 0.5, 0.5, 2, 2, 20, 20),
        CostDifference("rule", "graph", "merge_shared_rows", None, 7.0),
        CostDifference("rule", "graph", "rows_of_files", 1.5, 1.25, 7, 9, 70, 90),
        CostDifference("table", "graph", "cpg_nodes", 0.02, 0.02, 7, 9, 70, 90),
    )
    assert (compared.notes, compared.cut) == ((), {})


def test_frames_whose_plans_differ_come_first(compared: RunComparison) -> None:
    frames = [(each.frame, each.plan, each.seconds_a, each.seconds_b) for each in compared.frames]
    assert frames == [
        ("tables", "added", None, 3.0),
        ("graph rows", "changed", 1.0, 1.0),
        ("shared rows", "same", 2.0, 2.0),
    ]


def test_operators_that_were_added_and_changed_have_their_metrics(compared: RunComparison) -> None:
    sort, scan = compared.operators
    assert (sort.frame, sort.change, sort.operator) == ("graph rows", "added", "Sort")
    assert (sort.line_a, sort.metrics_a, sort.metrics_b) == (None, {}, {"output_rows": 9})
    assert (scan.change, scan.metrics_a, scan.metrics_b) == (
        "changed",
        {"output_rows": 3},
        {"output_rows": 1000},
    )
    assert "PushedFilters: [repo_id]" in (scan.line_a or "")
    assert "PushedFilters: []" in (scan.line_b or "")


def test_operators_of_equal_plans_are_listed_by_the_difference_of_their_times(tmp_path: Path) -> None:
    """A later frame, which reads the one before from Spark's cache, repeats its operators."""
    made = SmallLake(tmp_path / "lake")
    for run_id, rows, milliseconds in (("one", 54, 7351), ("two", 178, 51134)):
        made.publish(run_id, {"a": {}})
        operators = [
            (0, "output_rows", 7),
            (1, "time_to_execute_python_code_ms", milliseconds),
            (1, "output_rows", rows),
            (2, "shuffle_write_time_ns", 2_000_000 * rows),
        ]
        metrics = [
            {"operator_no": number, "operator": "x", "metric": name, "value": value}
            for number, name, value in operators
        ]
        lines = ("Filter name", "  Exchange SinglePartition", "    MapInArrow run(number, task)")
        swapped = [{**each, "operator_no": (0, 2, 1)[each["operator_no"]]} for each in metrics]
        frames = [
            {**frame(number, name, lines), "operator_metrics": swapped} for number, name in enumerate("fg")
        ]
        record(made, run_id, [], frames)
    compared = compare_runs(str(made.root), "one", "two", limit=None)
    assert [each.plan for each in compared.frames] == ["same", "same"]
    found = [(each.frame, each.change, each.operator) for each in compared.operators]
    assert found == [("f", "same", "MapInArrow"), ("f", "same", "Exchange")]
    slowest = compared.operators[0]
    assert slowest.metrics_a == {"time_to_execute_python_code_ms": 7351, "output_rows": 54}
    assert slowest.metrics_b == {"time_to_execute_python_code_ms": 51134, "output_rows": 178}


def test_settings_and_versions_that_differ(compared: RunComparison) -> None:
    assert compared.facts == (
        FactDifference("settings.runtime.cores", "1", "2"),
        FactDifference("settings.extract.partitions", None, "5"),
        FactDifference("witness_versions.libcst_files_v1", "1.8.2/4", "1.8.6/4"),
        FactDifference("settings_hash", HASH, OTHER),
    )


def test_the_order_of_the_runs_counts(lake: SmallLake, compared: RunComparison) -> None:
    back = compare_runs(str(lake.root), "two", "one", limit=None)
    assert [line.seconds for line in back.costs] == [-line.seconds for line in compared.costs]
    assert {each.change for each in back.operators} == {"removed", "changed"}


def test_lines_are_bounded(lake: SmallLake) -> None:
    cut = compare_runs(str(lake.root), "one", "two", limit=1)
    assert cut.cut == {"part": 1, "rule": 1, "frames": 2, "operators": 1, "facts": 3}
    assert [line.name for line in cut.costs if line.scope == "rule"] == ["merge_shared_rows"]


def test_a_run_without_recorded_costs(lake: SmallLake) -> None:
    found = compare_runs(str(lake.root), "two", "three")
    [note] = found.notes
    assert "run three has not recorded its costs" in note
    assert "build again" in note
    steps = [line for line in found.costs if line.scope == "step"]
    assert [(line.name, line.seconds_a, line.seconds_b) for line in steps] == [("graph", 9.0, 1.0)]
    assert {each.plan for each in found.frames} == {"removed"}


def test_wrong_names(lake: SmallLake) -> None:
    root = str(lake.root)
    with pytest.raises(UnknownName, match="unknown run 'four'") as unknown:
        compare_runs(root, "one", "four")
    assert "three" in unknown.value.hint
    with pytest.raises(UnknownName, match="2 begin with 't'"):
        compare_runs(root, "t", "one")
    with pytest.raises(UsageError, match="the same run") as same:
        compare_runs(root, "two", "tw")
    assert "codeanatomy runs" in same.value.hint


def test_python_has_it_too(lake: SmallLake, compared: RunComparison) -> None:
    assert Lake.open(lake.root).compare_runs("one", "two") == compared
    assert Lake.open(lake.root).compare_runs("two").b.run_id == "three"


# The command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    return command_runner(capfd, monkeypatch, tmp_path)


def test_the_command_shows_them_side_by_side(lake: SmallLake, run: RunCommand) -> None:
    code, out, err = run("runs", "compare", "one", "two", "--lake", str(lake.root))
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "step graph graph 2.00 9.00 +7.00 7 9 0.0 0.0" in lines
    assert "graph graph rows changed 1.00 1.00" in lines
    assert any(line.startswith("graph graph rows Sort added - ") for line in lines)
    assert f"settings_hash {HASH} {OTHER}" in lines
    code, out, err = run("runs", "compare", "one", "two", "--lake", str(lake.root), "--limit", "1")
    assert code == 0
    assert "rule: 1 not shown (--limit)" in err.splitlines()


def test_the_command_in_other_formats(lake: SmallLake, run: RunCommand, compared: RunComparison) -> None:
    code, out, _ = run("runs", "compare", "one", "two", "--lake", str(lake.root), "--format", "json")
    assert code == 0
    assert msgspec.json.decode(out, type=RunComparison) == compared
    code, out, _ = run("runs", "compare", "one", "two", "--lake", str(lake.root), "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert tuple(rows[0]) == LINE_COLUMNS
    assert len(rows) == len(comparison_lines(compared))
    assert {row["kind"] for row in rows} == {
        *("step", "part", "extractor", "rule", "table", "frame", "operator", "fact"),
    }
    # Of the group, too.
    code, out, _ = run("runs", "--lake", str(lake.root), "--format", "json", "compare", "one")
    assert code == 0
    assert msgspec.json.decode(out)["b"]["run_id"] == "three"


def test_the_command_names_the_next_step(lake: SmallLake, run: RunCommand) -> None:
    code, _, err = run("runs", "compare", "one", "four", "--lake", str(lake.root))
    assert code != 0
    assert "unknown run 'four'" in err
    assert "three" in err
