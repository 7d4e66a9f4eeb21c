"""Refreshes of lakes that Spark has built, beside builds by Spark: the same rows, and Spark reads them."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.feed import Window, read_feed
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.store import Store
from codeanatomy.plan import steps
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.build import build, plan
from codeanatomy.run.report import BuildReport
from support import light_builds, two_repositories
from support.sessions import SharedSession

STAGES = ("extract", "normalize", "relate", "graph")


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with both little repositories, built at once: their rows share data files."""
    return two_repositories.built_lake(spark, tmp_path_factory, 0)


def copied(base: Path, folder: Path) -> tuple[Path, dict[str, Path]]:
    """The lake and its sources, to be edited."""
    return two_repositories.copied_lake(folder, base), {
        name: two_repositories.put(folder, name) for name in ("a", "b")
    }


def by_spark(spark: SparkSession, lake: Path, sources: dict[str, Path], *, full: bool = False) -> BuildReport:
    request = light_builds.order(lake, sources, full=full, engine="spark")
    return build(request, Progress(io.StringIO()), SharedSession(spark))


def assert_clean(lake: Path, folder: Path, sources: dict[str, Path]) -> None:
    light_builds.clean_lake(folder / "clean", sources)
    found = compare_lakes(str(lake), str(folder / "clean"))
    assert not found.differences, found.differences
    assert {catalog.table(name).stage for name, rows in found.rows.items() if rows} == set(STAGES)
    assert not verify(str(lake)).findings


def test_spark_and_one_process_make_the_same_rows(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = two_repositories.built_lake(spark, tmp_path_factory, 1)
    sources = {"a": two_repositories.put(tmp_path, "a", 1), "b": two_repositories.put(tmp_path, "b")}
    assert_clean(lake, tmp_path, sources)


@pytest.mark.system
def test_spark_redoes_what_was_extracted_before(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    """The feeds say which files: one of them was extracted by local processes, another is edited now."""
    lake, sources = copied(base, tmp_path)
    first, second = sorted(sources["a"].rglob("*.py"))[:2]
    first.write_bytes(first.read_bytes() + b"\nmore = 1\n")
    light_builds.refreshed(lake, {"a": sources["a"]}, until="extract")
    second.write_bytes(second.read_bytes() + b"\nmore = 2\n")
    report = by_spark(spark, lake, {"a": sources["a"]})
    assert report.steps == {step: {"a": "refresh"} for step in STAGES}
    assert_clean(lake, tmp_path, sources)


@pytest.mark.system
def test_one_of_two_repositories_is_refreshed_and_spark_reads_it(
    base: Path, tmp_path: Path, spark: SparkSession
) -> None:
    lake, sources = copied(base, tmp_path)
    (sources["a"] / "two/shapes.py").write_bytes(b"class G:\n    def run(self, args):\n        return 1\n")
    report = light_builds.refreshed(lake, sources)
    assert {name: set(done.values()) for name, done in report.steps.items()} == {
        name: {"refresh", "skip"} for name in STAGES
    }
    assert_clean(lake, tmp_path, sources)
    # Rows by an engine that knows nothing of how they came there.
    for name in ("cpg_nodes", "cpg_edges_by_dst", "relations_v1", "ast_files_v1"):
        table = catalog.table(name)
        there = spark.read.format("delta").load(str(lake / table.path))
        found = Counter(tuple(row) for row in there.select("repo_id", table.owner or "").collect())
        here = light_table(str(lake), name, ["repo_id", table.owner or ""]).to_pylist()
        assert found == Counter(tuple(row.values()) for row in here)
    # The feed of the commit tells of the one file, and of nothing else.
    store = Store(spark, str(lake))
    (owner,) = {
        row["file_id"]
        for row in light_table(str(lake), "repo_files_v1", ["path", "file_id"]).to_pylist()
        if row["path"] == "two/shapes.py"
    }
    changed = read_feed(
        store, "repo_files_v1", Window(starting_version=report.tables["repo_files_v1"].version)
    )
    told = [(row["_change_type"], row["file_id"]) for row in changed.collect()]
    assert sorted(told) == [("delete", owner), ("insert", owner)]


@pytest.mark.system
def test_a_new_repository_runs_beside_one_that_is_refreshed(
    base: Path, tmp_path: Path, spark: SparkSession
) -> None:
    lake, sources = copied(base, tmp_path)
    (sources["b"] / "m.py").write_bytes(b"def g():\n    return h()\n\n\ndef h():\n    return g\n")
    sources["c"] = tmp_path / "c"
    shutil.copytree(sources["a"], sources["c"])
    report = by_spark(spark, lake, sources)
    assert report.steps["graph"] == {"a": "skip", "b": "refresh", "c": "run"}
    assert_clean(lake, tmp_path, sources)


@pytest.mark.system
def test_a_step_with_other_rules_runs_after_those_that_are_refreshed(
    base: Path, tmp_path: Path, spark: SparkSession
) -> None:
    lake, sources = copied(base, tmp_path)
    (sources["b"] / "m.py").write_bytes(b"def g():\n    return 1\n")
    digest = steps.code_digest

    def other(step: str) -> str:
        return f"{digest(step)}!" if step == "graph" else digest(step)

    with patch.object(steps, "code_digest", other):
        report = by_spark(spark, lake, sources)
        assert report.steps["relate"] == {"a": "skip", "b": "refresh"}
        assert report.steps["graph"] == {"a": "run", "b": "run"}
        assert_clean(lake, tmp_path, sources)
        assert plan(light_builds.order(lake, sources), Progress(io.StringIO())).nothing_to_do


@pytest.mark.system
def test_a_full_build_after_refreshes_leaves_no_rows_behind(
    base: Path, tmp_path: Path, spark: SparkSession
) -> None:
    lake, sources = copied(base, tmp_path)
    (sources["a"] / "one/calls.py").unlink()
    light_builds.refreshed(lake, sources)
    two_repositories.put(tmp_path, "a", 1)
    report = by_spark(spark, lake, sources, full=True)
    assert report.steps["extract"]["a"] == "run"
    assert_clean(lake, tmp_path, sources)
