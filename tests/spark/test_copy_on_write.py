"""Spark beside tables without deletion vectors: the same rows, change feed and features as our own code."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.catalog.readers import VECTORS_NAME
from codeanatomy.catalog.spec import FeatureName
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.replay import read_actions
from codeanatomy.delta.read.light import table_facts
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.delta.write.table_features import drop_vectors, enable_vectors
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import build
from support import light_builds, two_repositories
from support.delta_log import delta_log
from support.log_files import replay_vectors
from support.marks import quick
from support.owner_tables import NODES, Lake, changed, featured, filled, nodes_of, owner
from support.sessions import SharedSession

FEATURES: list[tuple[FeatureName, ...]] = [
    (),
    ("change_data_feed",),
    ("deletion_vectors",),
    ("change_data_feed", "deletion_vectors"),
]


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


def changes_of(spark: SparkSession, lake: Lake, version: int) -> Counter[tuple[str, str]]:
    """The rows of a version of Spark's feed, by kind of change and path."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", version).option("endingVersion", version).load(lake.location)
    return Counter((row["_change_type"], row["path"]) for row in rows.collect())


def test_the_feed_of_a_copy_on_write_commit(store: Store) -> None:
    """Spark has the rows that changed, and no copied one; so have the light readers."""
    fed = featured(NODES, "change_data_feed")
    lake = filled(Lake(LakeTables(store.root, (fed,)), fed, "owner_file_id"))
    lake.swap(*nodes_of(7, 3), owners=[owner(7), owner(8)])
    assert changes_of(store.spark, lake, 1) == {
        ("delete", "7.py"): 10,
        ("delete", "8.py"): 10,
        ("insert", "7.py"): 6,
    }
    assert changed(lake, 1, 1) == {7, 8}
    lake.swap(*nodes_of(9, 1), owners=[owner(7), owner(9)])
    assert changes_of(store.spark, lake, 2) == {
        ("delete", "7.py"): 6,
        ("delete", "9.py"): 10,
        ("insert", "9.py"): 2,
    }
    lake.all_see(store, *range(3))


@pytest.mark.parametrize("features", FEATURES, ids=lambda names: "+".join(names) or "none")
def test_spark_creates_tables_with_the_same_features(
    make_store: Callable[..., Store], tmp_path: Path, features: tuple[FeatureName, ...]
) -> None:
    table = featured(NODES, *features)
    spark_store = make_store(table)
    append(spark_store, NODES.name, spark_store.spark.createDataFrame([], spark_schema(table)), Commit("r1"))
    theirs = delta_log(spark_store, NODES.name).snapshot()
    lake = filled(Lake(LakeTables(str(tmp_path / "ours"), (table,)), table, "owner_file_id"), files=1)
    ours = delta_log(Store(spark_store.spark, str(tmp_path / "ours"), (table,)), NODES.name).snapshot()
    assert ours.location == lake.location
    assert (ours.min_reader_version, ours.min_writer_version) == (
        theirs.min_reader_version,
        theirs.min_writer_version,
    )
    assert set(ours.reader_features) == set(theirs.reader_features)
    assert set(ours.writer_features) == set(theirs.writer_features)
    assert ours.properties == theirs.properties


@pytest.mark.system
def test_vectors_are_dropped_and_enabled_for_spark_too(store: Store) -> None:
    table = featured(NODES, "change_data_feed", "deletion_vectors")
    lake = filled(Lake(LakeTables(store.root, (table,)), table, "owner_file_id"))
    lake.swap(*nodes_of(7, 3), owners=[owner(7)])
    assert lake.vectors()
    drop_vectors(table, lake.location, Commit("dropping"))
    lake.history.append(lake.history[-1])
    info = delta_log(store, NODES.name).snapshot()
    assert (info.min_reader_version, info.min_writer_version, info.reader_features) == (1, 4, ())
    lake.swap(*nodes_of(8, 1), owners=[owner(8)])
    assert not lake.vectors()
    enable_vectors(table, lake.location, Commit("enabling"))
    lake.history.append(lake.history[-1])
    assert delta_log(store, NODES.name).snapshot().reader_features == (VECTORS_NAME,)
    lake.swap(owners=[owner(9)])
    assert lake.vectors()
    lake.all_see(store, *range(6))
    assert changes_of(store.spark, lake, 2) == changes_of(store.spark, lake, 4) == {}
    assert changes_of(store.spark, lake, 3) == {("delete", "8.py"): 10, ("insert", "8.py"): 2}
    # Spark goes on with what we have written.
    store.spark.sql(f"DELETE FROM delta.`{lake.location}` WHERE path = '3.py'")
    rows = store.spark.read.format("delta").load(lake.location)
    assert rows.count() == lake.history[-1].total() - 10


@pytest.mark.parametrize("setting", quick(["delta.readers=all", "delta.readers=modern"], 0))
def test_refreshes_by_spark(spark: SparkSession, tmp_path: Path, setting: str) -> None:
    """A build and a refresh by Spark: the rows of a clean lake, and the protocol of the first version."""
    sources = {name: two_repositories.put(tmp_path, name) for name in ("a", "b")}
    lake = tmp_path / "lake"
    request = light_builds.order(lake, sources, setting, engine="spark")
    build(request, Progress(io.StringIO()), SharedSession(spark))
    edited = min(sources["a"].rglob("*.py"))
    edited.write_bytes(edited.read_bytes() + b"\nmore = 1\n")
    report = build(request, Progress(io.StringIO()), SharedSession(spark))
    assert report.steps["graph"]["a"] == "refresh"
    light_builds.clean_lake(tmp_path / "clean", sources)
    found = compare_lakes(str(lake), str(tmp_path / "clean"))
    assert not found.tables, (found.tables, found.differences[:5])
    vectors = 0
    for name, pin in Snapshot.open(str(lake)).pins.items():
        place = location(str(lake), name)
        for version in range(1, pin.version + 1):
            assert not any(each.protocol for each in read_actions(place, version)), (name, version)
        vectors += len(replay_vectors(place, pin.version))
        facts = table_facts(str(lake), name, pin.version)
        assert facts.min_reader_version == 1 or setting == "delta.readers=modern"
        if name in ("repo_files_v1", "cpg_nodes"):
            assert spark.read.format("delta").load(place).count() == pin.rows, name
    assert (vectors > 0) == (setting == "delta.readers=modern")
    shutil.rmtree(lake)
