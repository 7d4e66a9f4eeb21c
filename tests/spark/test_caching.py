"""Cache boundaries: what is kept while a step commits, what is recorded of it, and that it is let go."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.config import load_settings
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.staging import clear_staged, stage
from codeanatomy.errors import StepFailed, StorageFailure
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.pipeline import commits
from codeanatomy.pipeline.executors import caching
from codeanatomy.pipeline.executors.spark_executor import SparkExecutor, SparkHeld
from codeanatomy.pipeline.pieces import Pieces
from codeanatomy.plan.steps import EXTRACT, GRAPH, RELATE
from codeanatomy.query.checks.compare import compare_lakes
from support.light_builds import clean_lake
from support.spark_builds import built
from support.two_repositories import put

STAGED = ("tables.relations_v1.cache=delta_staging", "refresh.max_share=0")


def uses(lake: Path, run_id: str) -> list[dict[str, Any]]:
    """What is recorded of the caches of a run."""
    columns = catalog.table("view_cache").column_names
    rows = light_table(str(lake), "view_cache", columns).to_pylist()
    return sorted((row for row in rows if row["run_id"] == run_id), key=lambda row: row["event_no"])


def persisted(spark: SparkSession) -> list[str]:
    """What Spark keeps, besides the logs of tables that Delta keeps for itself."""
    kept = spark.sparkContext._jsc.getPersistentRDDs().values()
    names = [str(rdd.name()) for rdd in kept]
    return [name for name in names if "Delta Table State" not in name]


def test_the_strongest_wish_of_a_step_counts() -> None:
    def boundary(step: str, *flags: str) -> tuple[str, str]:
        table = caching.table_with_strongest_cache(load_settings(flags, env={}, start=None).tables, step)
        return table.name, table.cache

    assert boundary(RELATE) == ("relations_v1", "memory")
    assert boundary(RELATE, *STAGED) == ("relations_v1", "delta_staging")
    assert boundary(GRAPH) == ("cpg_nodes", "memory")
    assert boundary(GRAPH, "tables.cpg_edges.cache=delta_staging") == ("cpg_edges", "delta_staging")
    assert boundary(GRAPH, "tables.cpg_nodes.cache=none")[1] == "none"


@pytest.mark.system
def test_memory_is_recorded_and_let_go(spark: SparkSession, lake: Path) -> None:
    assert not persisted(spark)
    found = uses(lake, recorded_runs(str(lake))[0].run_id)
    stages = {table.name: table.stage for table in catalog.TABLES}
    # Normalize is done in pass one; the graph has two frames, of files and of what they share.
    counts = Counter(stages[use["table_name"]] for use in found)
    assert counts == {EXTRACT: 1, RELATE: 1, GRAPH: 2}
    for use in found:
        assert (use["policy"], use["location"], use["hit"]) == ("memory", None, False)
        assert use["size_bytes"] > 1000
        assert len(use["fingerprint"]) == 32


@pytest.mark.system
def test_memory_is_let_go_by_a_step_that_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def broken(*given: Any, **more: Any) -> None:
        seen.append(persisted(spark))
        raise StorageFailure("it breaks", "")

    monkeypatch.setattr(commits, "commit_files", broken)
    with pytest.raises(StorageFailure, match="step extract failed: it breaks"):
        built(spark, tmp_path / "lake", {"b": put(tmp_path, "b")})
    assert any(seen)
    assert not persisted(spark)


@pytest.mark.system
def test_memory_is_let_go_by_a_pass_that_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    map_groups = SparkExecutor.map_groups

    def with_a_bug(
        executor: SparkExecutor, step: str, held: Any, names: Any, by: Any, work: Any
    ) -> SparkHeld:
        def broken(groups: Any) -> Pieces:
            raise ValueError("a bug in a task")
            yield

        return map_groups(executor, step, held, names, by, broken)

    monkeypatch.setattr(SparkExecutor, "map_groups", with_a_bug)
    with pytest.raises(StepFailed, match=r"step relate failed: .*a bug in a task"):
        built(spark, tmp_path / "lake", {"b": put(tmp_path, "b")}, until=RELATE)
    assert not persisted(spark)


@pytest.mark.system
def test_every_policy_makes_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Also where a step has several frames, each of which is staged by itself."""
    named = {"a": put(tmp_path, "a"), "b": put(tmp_path, "b")}
    policies = {"ast_files_v1": "none", "relations_v1": "delta_staging", "cpg_edges": "delta_staging"}
    weakened = [f"tables.{table.name}.cache=none" for table in catalog.TABLES if table.stage == EXTRACT]
    chosen = [f"tables.{name}.cache={policy}" for name, policy in policies.items()]
    report = built(spark, tmp_path / "lake", named, until=None, settings=[*weakened, *chosen])
    found = uses(tmp_path / "lake", report.run_id)
    assert [(use["table_name"], use["policy"], use["hit"]) for use in found] == [
        ("relations_v1", "delta_staging", False),
        ("cpg_edges", "delta_staging", False),
        ("cpg_edges", "delta_staging", False),
    ]
    assert len({use["location"] for use in found}) == 3
    assert not list((tmp_path / "lake").glob("staging/*"))
    clean_lake(tmp_path / "clean", named)
    compared = compare_lakes(str(tmp_path / "lake"), str(tmp_path / "clean"))
    assert not compared.tables, compared.differences[:3]


@pytest.mark.system
def test_what_a_failed_run_has_staged_is_not_computed_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    for name in ("a", "b"):
        # No data file has rows of both.
        clean_lake(lake, {name: put(tmp_path, name)})
    named = {"b": tmp_path / "b"}
    (tmp_path / "b" / "more.py").write_bytes(b"import m\n\nm.g()\n")
    adopt = commits.commit_files
    with monkeypatch.context() as patched:

        def broken(store: Any, name: str, *given: Any, **more: Any) -> Any:
            if name == "relations_v1":
                raise StorageFailure("it breaks", "")
            return adopt(store, name, *given, **more)

        patched.setattr(commits, "commit_files", broken)
        with pytest.raises(StorageFailure, match="step relate failed: it breaks"):
            built(spark, lake, named, until=RELATE, settings=STAGED)
    staged = list((lake / "staging" / RELATE).iterdir())
    assert len(staged) == 1
    report = built(spark, lake, named, until=RELATE, settings=STAGED)
    assert report.steps[EXTRACT] == {"b": "resume"}
    location = f"staging/{RELATE}/{staged[0].name}"
    # Programs are compiled from the tables; the solve is that of the failed run.
    (use,) = [use for use in uses(lake, report.run_id) if use["location"] == location]
    assert use["table_name"] == "relations_v1"
    assert (use["hit"], use["fingerprint"]) == (True, staged[0].name)
    assert use["size_bytes"] > 0
    assert not (lake / "staging" / RELATE).exists()
    assert any(row["src_qname"] == "more" for row in _calls(lake))


def _calls(lake: Path) -> list[dict[str, Any]]:
    rows = Snapshot.open(str(lake)).rows("relations_v1", ["src_qname", "relation_kind"])
    found: list[dict[str, Any]] = rows.to_pylist()
    return [row for row in found if row["relation_kind"] == "CALL_GRAPH"]


@pytest.mark.system
def test_a_frame_that_was_staged_by_half_is_staged_anew(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    place = tmp_path / "staging" / "relate" / "f00d"
    place.mkdir(parents=True)
    (place / "part-0.snappy.parquet").write_bytes(b"half of it")
    first = stage(store, "relate", spark.range(5), "f00d")
    assert (first.hit, first.rows.count(), first.location) == (False, 5, "staging/relate/f00d")
    second = stage(store, "relate", spark.range(7), "f00d")
    assert (second.hit, second.rows.count()) == (True, 5)
    assert second.size_bytes == first.size_bytes > 0
    clear_staged(store, "relate")
    assert not place.exists()
    clear_staged(store, "relate")
