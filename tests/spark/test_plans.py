"""The plans of the frames that a build runs, as it has recorded them.

Goldens in `tests/cases/plans`: `pytest tests/spark/test_plans.py --regenerate`, then review the diff.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.delta.read.light import light_table
from codeanatomy.spark.plans import PlanTexts, normalise_plan
from support import two_repositories
from support.folders import CASES
from support.plan_goldens import outline
from support.spark_builds import built

PLANS = CASES / "plans"
# The frames of a first build, in their order, and the functions of ours that they run.
FRAMES = {
    "files": ["run"],
    "solve": ["run"],
    "graph rows": ["run"],
    "shared rows": ["run"],
    "tables": ["write", "split"],
}
COLUMNS = ("frame_no", "frame_name", "logical_plan", "optimized_plan", "physical_plan", "step_name")


def frames_of(lake: Path, run_id: str) -> list[tuple[str, PlanTexts]]:
    """The frames of a run by their names, in the order in which they were computed."""
    recorded = light_table(str(lake), "plan_artifacts", (*COLUMNS, "event_no"), {"run_id": [run_id]})
    rows = sorted(recorded.to_pylist(), key=lambda row: row["event_no"])
    return [
        (row["frame_name"], PlanTexts(row["logical_plan"], row["optimized_plan"], row["physical_plan"]))
        for row in rows
        if row["frame_name"] is not None
    ]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plans")
    return {name: two_repositories.put(folder, name) for name in ("a", "b")}


@pytest.fixture(scope="module")
def first(
    spark: SparkSession, sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, PlanTexts]:
    """The plans of a first build of two repositories."""
    lake = tmp_path_factory.mktemp("lake") / "lake"
    report = built(spark, lake, sources, until=None)
    frames = frames_of(lake, report.run_id or "")
    assert [name for name, _ in frames] == [*FRAMES]
    return dict(frames)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Project [a#12, mtime_ns#7L, lambda x_3#4.kind]", "Project [a, mtime_ns, lambda x.kind]"),
        ("Exchange SinglePartition, X, [plan_id=31]", "Exchange SinglePartition, X"),
        ("Exchange hashpartitioning(f(a#1, 2), b#2, 200), X", "Exchange hashpartitioning(f(a, 2), b, *), X"),
        ("Exchange rangepartitioning(a#1 ASC, 4)", "Exchange rangepartitioning(a ASC, *)"),
        ("Exchange RoundRobinPartitioning(1), X", "Exchange RoundRobinPartitioning(*), X"),
        ("RepartitionByExpression [a#1, f(b#2)], 8", "RepartitionByExpression [a, f(b)], *"),
        ("Repartition 1, true", "Repartition *, true"),
        ("pmod(hash(file_id#1, 42), 8) AS task#3", "pmod(hash(file_id, 42), *) AS task"),
        ("Range (0, 9, step=1, splits=2)", "Range (0, 9, step=1, splits=*)"),
        ("*(3) Filter isnotnull(_gen_alias_77#77)", "Filter isnotnull(_gen_alias_)"),
        ("Scan ExistingRDD[a#1L] MapPartitionsRDD[17]", "Scan ExistingRDD[a] MapPartitionsRDD[*]"),
        ("MapInArrow <function rules at 0x7f00a1>(a#1)#9", "MapInArrow <function rules>(a)"),
        ("Mode(org.example.Thing@1f2e3d)", "Mode(org.example.Thing@*)"),
        (
            "FileScan Location: TahoeLogFileIndex(1 paths)[file:/a/b, ...], PartitionFilters: []",
            "FileScan Location: *, PartitionFilters: []",
        ),
        ("SaveInto s3a://bucket/lake/graph/x, Append", "SaveInto *, Append"),
    ],
)  # fmt: skip
def test_what_differs_between_runs_is_taken_away(text: str, expected: str) -> None:
    assert normalise_plan(text) == expected


def test_numbers_that_mean_something_stay() -> None:
    plan = (
        "Filter ((size(a) > 0) AND (substr(b, 1, 60) = x7)) AND c IN (1,2)\nLimit 8\nSort [a ASC], false, 0"
    )
    assert normalise_plan(plan) == plan


@pytest.mark.parametrize("name", FRAMES)
def test_the_plan_is_as_reviewed(
    name: str, first: dict[str, PlanTexts], request: pytest.FixtureRequest
) -> None:
    """Each process that runs this has expression ids and plan ids of its own."""
    path = PLANS / f"{name.replace(' ', '_')}.txt"
    found = f"== optimized ==\n{first[name].optimized}\n\n== physical ==\n{outline(first[name].physical)}\n"
    if request.config.getoption("--regenerate"):
        path.write_text(found, encoding="utf-8")
    assert path.exists(), "a new frame: run this test with --regenerate and review what it writes"
    assert found.split("\n") == path.read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_one_exchange_of_pieces(name: str, first: dict[str, PlanTexts]) -> None:
    """Rows of all tables meet at once; what was computed before is read from the cache."""
    own = [line for line in first[name].physical.splitlines() if not line.startswith("      ")]
    operators = [line.split()[0] for line in first[name].physical.splitlines()]
    # A frame below another one was cached: its exchange is not run again.
    above = (
        operators[: operators.index("InMemoryTableScan")] if "InMemoryTableScan" in operators else operators
    )
    assert above.count("Exchange") + above.count("Coalesce") <= 1, own
    assert not [each for each in operators if re.search(r"FileScan|Join|Codegen|Adaptive|Aggregate", each)]


@pytest.mark.parametrize("name", FRAMES)
def test_python_runs_by_the_batch(name: str, first: dict[str, PlanTexts]) -> None:
    functions = re.findall(r"MapInArrow (\w+)\(", first[name].physical)
    assert functions[: len(FRAMES[name])] == FRAMES[name]
    assert not re.search(r"BatchEvalPython|ArrowEvalPython|MapInPandas|FlatMapGroups", first[name].physical)


def test_a_plan_is_written_out(first: dict[str, PlanTexts]) -> None:
    for plans in first.values():
        assert "more fields" not in plans.logical + plans.optimized + plans.physical
        assert "..." not in plans.physical


def test_the_jobs_of_a_build_are_its_frames(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path
) -> None:
    """A first build has at most six jobs, and a refresh at most five, of however many repositories."""
    lake = tmp_path / "lake"
    own = {name: two_repositories.put(tmp_path, name) for name in ("a", "b")}
    before = jobs_of(spark)
    report = built(spark, lake, own, until=None, settings=("refresh.max_share=1",))
    assert jobs_of(spark) - before == len(frames_of(lake, report.run_id or "")) <= 6
    for source in own.values():
        edited = next(path for path in sorted(source.rglob("*.py")) if path.stat().st_size)
        edited.write_text(f"{edited.read_text()}\n\ndef added(value):\n    return value\n")
    before = jobs_of(spark)
    report = built(spark, lake, own, until=None, settings=("refresh.max_share=1",))
    assert {action for each in report.steps.values() for action in each.values()} == {"refresh"}
    assert jobs_of(spark) - before == len(frames_of(lake, report.run_id or "")) <= 5


def jobs_of(spark: SparkSession) -> int:
    """The number of jobs that Spark has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())
