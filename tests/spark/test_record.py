"""What a run leaves behind: its rows in the manifest, its plans and their cost, its stamp in histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import decode_stamp
from codeanatomy.delta.read.light import light_table, table_facts
from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.manifest import InputPin, RunManifest, read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.run_plan import written_tables
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE, catalog_hash, fingerprint
from codeanatomy.run import record
from codeanatomy.run.report import BuildReport
from codeanatomy.spark.task_counter import TaskCounter
from support.published_rows import counted
from support.spark_builds import built
from support.two_repositories import built_lake, copied_lake, put

STEPS = (EXTRACT, NORMALIZE, RELATE, GRAPH)


@pytest.fixture(scope="module")
def first(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_lake(spark, tmp_path_factory, 1)


@pytest.fixture(scope="module")
def rows(first: Path) -> dict[str, RunManifest]:
    """The rows of the only run, by repository."""
    return {row.repo_id: row for row in read_manifest(str(first))}


@pytest.fixture(scope="module")
def second(
    spark: SparkSession, first: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, BuildReport]:
    """A copy in which `a` was built again with all kinds, so of one step only."""
    folder = tmp_path_factory.mktemp("second")
    lake = copied_lake(folder, first)
    return lake, built(spark, lake, {"a": put(folder, "a", 1)}, until=None, profile="full")


def recorded(lake: Path, name: str, run_id: str) -> list[dict[str, Any]]:
    """The rows of a run in an observe table."""
    found = light_table(str(lake), name, catalog.table(name).column_names, {"run_id": [run_id]})
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="strict")
    return rows


def artifacts(lake: Path, run_id: str) -> dict[str, dict[str, Any]]:
    """The totals of the steps."""
    found = recorded(lake, "plan_artifacts", run_id)
    return {row["step_name"]: row for row in found if row["frame_no"] is None}


def frames(lake: Path, run_id: str) -> list[dict[str, Any]]:
    """The frames of a run, in the order of their steps and numbers."""
    found = recorded(lake, "plan_artifacts", run_id)
    return sorted(
        (row for row in found if row["frame_no"] is not None),
        key=lambda row: (STEPS.index(row["step_name"]), row["frame_no"]),
    )


def test_a_row_pins_every_table(first: Path, rows: dict[str, RunManifest]) -> None:
    assert set(rows) == {"a", "b"}
    assert rows["a"].output_pins == rows["b"].output_pins
    pins = {pin.table_name: pin for pin in rows["a"].output_pins}
    assert set(pins) == set(written_tables(catalog.TABLES))
    for name, pin in pins.items():
        facts = table_facts(str(first), name, pin.version)
        assert pin.version == DeltaTable(location(str(first), name)).version()
        assert (pin.rows, pin.features) == (facts.rows, facts.features)
        assert (pin.min_reader_version, pin.min_writer_version) == (
            facts.min_reader_version,
            facts.min_writer_version,
        )
    # There was nothing before.
    assert rows["a"].input_pins == ()


def test_counts_are_those_of_the_rows(first: Path, rows: dict[str, RunManifest]) -> None:
    assert not counted(first)
    assert rows["a"].row_counts["repo_files_v1"] == 7
    assert rows["b"].row_counts["repo_files_v1"] == 2
    assert sum(rows["a"].error_counts.values()) == rows["a"].row_counts["extract_error_artifacts"] > 0


def test_a_row_says_what_it_was_made_from(rows: dict[str, RunManifest]) -> None:
    for repo_id, row in rows.items():
        assert row.status == "succeeded"
        assert (row.error, row.mode) == (None, "full")
        assert set(row.plan_fingerprints) == set(STEPS)
        assert row.artifact_ids == {step: f"{row.run_id}/{step}" for step in STEPS}
        assert row.catalog_hash == catalog_hash(catalog.TABLES)
        assert len(row.settings_hash or "") == len(row.source_digest or "") / 2 == 32
        assert row.witness_versions.keys() >= {"ast_files_v1", "libcst_files_v1", "scip_index_v1"}
        assert (row.repo_root or "").endswith(repo_id)
        assert row.started_at < row.finished_at
        assert set(row.step_ms) >= {"list", "session", "undo", *(f"{step}_step" for step in STEPS)}
    assert rows["a"].source_digest != rows["b"].source_digest
    assert rows["a"].plan_fingerprints[GRAPH] != rows["b"].plan_fingerprints[GRAPH]


def test_the_history_of_every_table_has_run_and_fingerprint(
    first: Path, rows: dict[str, RunManifest]
) -> None:
    prints = {
        step: fingerprint({name: row.plan_fingerprints[step] for name, row in rows.items()}) for step in STEPS
    }
    run_id = rows["a"].run_id
    for name in written_tables(catalog.TABLES):
        stage = catalog.table(name).stage
        told = [
            decode_stamp(each.get("userMetadata"))
            for each in DeltaTable(location(str(first), name)).history()
            if each["operation"] == "WRITE"
        ]
        assert told
        for each in told:
            assert each is not None
            assert each.run_id == run_id
            assert each.plan_fingerprint in (prints.get(stage, prints[EXTRACT]), prints[RELATE])
            if stage != EXTRACT and stage in prints:
                assert each.inputs


def test_plans_and_their_cost(first: Path, rows: dict[str, RunManifest]) -> None:
    found = artifacts(first, rows["a"].run_id)
    assert set(found) == set(STEPS)
    for step, row in found.items():
        assert row["artifact_id"] == rows["a"].artifact_ids[step]
        assert dict(row["fingerprints"]) == {
            name: each.plan_fingerprints[step] for name, each in rows.items()
        }
        assert (row["status"], row["error"]) == ("succeeded", None)
        assert row["rows"] > 0
        assert row["bytes"] > 0
        assert row["duration_ms"] > 0
        # Plans are those of frames.
        assert (row["frame_name"], row["physical_plan"], row["plan_hash"]) == (None, None, None)
        if step == NORMALIZE:
            # Done where files are extracted: no jobs of its own.
            assert row["jobs"] == 0
            continue
        assert row["jobs"] > 0
        assert row["tasks"] >= row["jobs"]
    written = {name for row in found.values() for name in row["tables"]}
    assert written == set(written_tables(catalog.TABLES))


def test_a_build_succeeds_without_the_figures_of_its_jobs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are internals of Spark: where these are others, the figures are unknown."""

    def missing(*_: object) -> None:
        raise AttributeError("'SparkContext' object has no attribute '_jsc'")

    monkeypatch.setattr(record, "job_metrics", missing)
    monkeypatch.setattr(TaskCounter, "_of_tracker", missing)
    monkeypatch.setattr("codeanatomy.spark.task_counter.POLL_SECONDS", 0.0)
    report = built(spark, tmp_path / "lake", {"a": put(tmp_path, "a", 1)})
    assert report.status == "succeeded"
    [row] = artifacts(tmp_path / "lake", str(report.run_id)).values()
    assert [row[name] for name in ("jobs", "tasks", "spilled_bytes", "skew")] == [None] * 4
    assert row["rows"] > 0


def test_every_frame_has_its_plans(first: Path, rows: dict[str, RunManifest]) -> None:
    found = frames(first, rows["a"].run_id)
    names = [(row["step_name"], row["frame_name"]) for row in found]
    assert set(names) >= {
        (EXTRACT, "files"),
        (RELATE, "solve"),
        (GRAPH, "graph rows"),
        (GRAPH, "shared rows"),
    }
    for step in STEPS:
        numbers = [row["frame_no"] for row in found if row["step_name"] == step]
        assert numbers == list(range(len(numbers)))
    for row in found:
        # The id in the manifest leads to the step and to its frames.
        assert row["artifact_id"] == rows["a"].artifact_ids[row["step_name"]]
        for plan in ("logical_plan", "optimized_plan", "physical_plan"):
            assert row[plan], (row["frame_name"], plan)
            assert str(first) not in row[plan]
        assert row["plan_hash"] == fingerprint(row["physical_plan"])
        assert row["operator_metrics"]
        assert row["duration_ms"] >= 0
        # Totals are those of steps, so that sums over all rows are right.
        assert [row[name] for name in ("rows", "bytes", "jobs", "tasks")] == [None] * 4
    [graph] = [row for row in found if row["frame_name"] == "graph rows"]
    assert "repo_id, chunk" in graph["physical_plan"]
    assert "MapInArrow" in {each["operator"] for each in graph["operator_metrics"]}


def test_costs_by_step_extractor_rule_and_table(first: Path, rows: dict[str, RunManifest]) -> None:
    found = recorded(first, "run_costs", rows["a"].run_id)
    by_scope: dict[str, dict[str, dict[str, Any]]] = {}
    for row in found:
        by_scope.setdefault(row["scope"], {})[row["name"]] = row
    assert set(by_scope) == {"part", "step", "extractor", "rule", "table"}
    assert set(by_scope["step"]) == set(STEPS)
    assert set(by_scope["table"]) == set(written_tables(catalog.TABLES))
    assert set(by_scope["extractor"]) >= {"ast_files_v1", "libcst_files_v1", "bytecode_files_v1"}
    assert set(by_scope["rule"]) >= {
        *("analyze_flow", "type_expressions", "compile_file", "solve_repository", "emit_relations"),
        *("rows_of_files", "merge_shared_rows"),
    }
    steps = artifacts(first, rows["a"].run_id)
    for name, row in by_scope["step"].items():
        assert (row["rows"], row["bytes"]) == (steps[name]["rows"], steps[name]["bytes"])
    for name, row in by_scope["table"].items():
        assert row["bytes"] == table_facts(str(first), name, 0).size_bytes or row["rows"] is not None
        assert row["seconds"] >= 0
    read = sum(each.row_counts["ast_files_v1"] for each in rows.values())
    assert by_scope["extractor"]["ast_files_v1"]["rows"] == read
    # Costs travel with counts, and are none.
    for each in rows.values():
        assert set(each.row_counts) <= {table.name for table in catalog.TABLES}


def test_a_run_of_one_step_carries_the_rest_forward(
    first: Path, rows: dict[str, RunManifest], second: tuple[Path, BuildReport]
) -> None:
    lake, report = second
    assert {step: done["a"] for step, done in report.steps.items()} == {
        EXTRACT: "skip",
        NORMALIZE: "skip",
        RELATE: "skip",
        GRAPH: "run",
    }
    graph = {table.name for table in catalog.TABLES if table.stage == GRAPH}
    assert set(report.tables) == graph
    [row] = [each for each in read_manifest(str(lake)) if each.run_id == report.run_id]
    before, after = rows["a"].output_pins, row.output_pins
    assert [pin for pin in after if pin.table_name not in graph] == [
        pin for pin in before if pin.table_name not in graph
    ]
    assert {pin.table_name for pin in after if pin not in before} == graph
    assert row.input_pins == tuple(InputPin(pin.table_name, pin.version) for pin in before)
    assert row.artifact_ids == {**rows["a"].artifact_ids, GRAPH: f"{report.run_id}/{GRAPH}"}
    old, new = rows["a"].plan_fingerprints, row.plan_fingerprints
    assert {step for step in STEPS if old[step] != new[step]} == {GRAPH}
    assert row.settings_hash != rows["a"].settings_hash
    assert row.row_counts["cpg_nodes"] > rows["a"].row_counts["cpg_nodes"]
    assert row.error_counts == rows["a"].error_counts
    assert not counted(lake)
    assert set(artifacts(lake, report.run_id)) == {GRAPH}
    # The other repository is read at the new pins, and was made by the first run.
    assert Snapshot.open(str(lake)).repositories["b"].run_id == rows["b"].run_id
