"""Restored tables and runs that Spark continues to write."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.restore import restore_table, restore_with_fallback
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import NeedsSpark, StorageFailure
from support.caller_table import NAME, UNDO, callers
from support.small_lakes import RELATIONS
from support.spark_builds import built
from support.three_runs import ThreeRuns, copied, expect_clean, expect_sound, three_runs
from support.two_repositories import apart_lake, copied_lake


@pytest.mark.parametrize(
    "name", [pytest.param("repo_files_v1", marks=pytest.mark.system), "cpg_nodes", "diagnostics_norm_v1"]
)
@pytest.mark.system
def test_spark_goes_on(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """Of tables that Spark has made, with a feed and without, and one with partitions of our own files."""
    lake = copied_lake(tmp_path, apart_lake(spark, tmp_path_factory))
    store = Store(spark, str(lake))
    before = scan(store, name)
    rows = before.rows.collect()
    assert rows
    newest = DeltaTable(location(str(lake), name)).version()
    restore_table(str(lake), name, None, UNDO)
    assert scan(store, name).rows.count() == 0
    version = restore_table(str(lake), name, newest, UNDO)
    again = scan(store, name, version).rows
    assert sorted(map(str, again.collect())) == sorted(map(str, rows))
    append(store, name, again, Commit("run-9"))
    assert scan(store, name).rows.count() == 2 * len(rows)


@pytest.mark.system
def test_spark_brings_back_what_only_spark_can_write(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    place = store.location(NAME)
    properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    spark.sql(f"CREATE TABLE delta.`{place}` (src_qname string) USING delta {properties}")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('f')")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('g')")
    with pytest.raises(NeedsSpark, match="Unsupported table features"):
        restore_table(str(tmp_path), NAME, 1, UNDO)
    assert restore_with_fallback(store.root, NAME, 1, UNDO, lambda: store) == 3
    assert callers(tmp_path) == ["f"]
    assert restore_with_fallback(store.root, NAME, None, UNDO, lambda: store) == 4
    assert callers(tmp_path) == []
    told = decode_stamp(DeltaTable(place).history(1)[0].get("userMetadata"))
    assert told is not None
    assert (told.run_id, told.operation) == ("run-8", "restore")
    with pytest.raises(StorageFailure, match="cannot be restored to version 9") as caught:
        restore_with_fallback(store.root, NAME, 9, UNDO, lambda: store)
    assert caught.value.hint


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ThreeRuns:
    return three_runs(tmp_path_factory)


@pytest.fixture
def lake(made: ThreeRuns, tmp_path: Path) -> ThreeRuns:
    """A copy to be written to."""
    return copied(tmp_path, made)


@pytest.mark.system
def test_a_restored_table_is_whole_again_after_a_build(lake: ThreeRuns, spark: SparkSession) -> None:
    lake.restore_table(RELATIONS, lake.version(RELATIONS, 0))
    built(spark, lake.root, lake.put(2), until=None)
    expect_clean(lake, 2)
    expect_sound(lake)
