"""Tables brought back without a JVM: to a version, to no rows; and Spark goes on with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.read.light import location
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.commit import append
from codeanatomy.delta.write.restore import restore_table, restore_with_fallback
from codeanatomy.errors import NeedsSpark, StorageFailure
from support.little import apart_lake, attacked

NAME = "relations_v1"
UNDO = Commit("run-8", sequence=-1)
FEED = {"delta.enableChangeDataFeed": "true"}


def write(lake: Path, *callers: str, mode: str = "append", properties: dict[str, str] | None = None) -> None:
    rows = [{"repo_id": "a", "relation_kind": "CALL_GRAPH", "src_qname": name} for name in callers]
    data = pa.Table.from_pylist(rows, arrow_schema(catalog.table(NAME)))
    write_deltalake(location(str(lake), NAME), data, mode=mode, configuration=properties)


def callers(lake: Path) -> list[str]:
    table = DeltaTable(location(str(lake), NAME)).to_pyarrow_table(columns=["src_qname"])
    return sorted(table.column(0).to_pylist())


@pytest.mark.parametrize("properties", [None, FEED], ids=["plain", "feed"])
def test_to_a_version_and_to_no_rows(tmp_path: Path, properties: dict[str, str] | None) -> None:
    write(tmp_path, "f", properties=properties)
    write(tmp_path, "g")
    write(tmp_path, "h", mode="overwrite")
    assert restore_table(str(tmp_path), NAME, 1, UNDO) == 3
    assert callers(tmp_path) == ["f", "g"]
    assert restore_table(str(tmp_path), NAME, None, UNDO) == 4
    assert callers(tmp_path) == []
    # What was undone can be had again.
    assert restore_table(str(tmp_path), NAME, 2, UNDO) == 5
    assert callers(tmp_path) == ["h"]


def test_the_history_says_who_did_it(tmp_path: Path) -> None:
    write(tmp_path, "f")
    write(tmp_path, "g")
    restore_table(str(tmp_path), NAME, 0, UNDO)
    restore_table(str(tmp_path), NAME, None, UNDO)
    told = [
        decode_stamp(each.get("userMetadata"))
        for each in DeltaTable(location(str(tmp_path), NAME)).history(2)
    ]
    assert [(each.run_id, each.sequence, each.operation) for each in told if each is not None] == [
        ("run-8", -1, "restore"),
        ("run-8", -1, "restore"),
    ]


def test_what_is_not_there_cannot_be_brought_back(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match=f"{NAME} at .* cannot be restored to version 0"):
        restore_table(str(tmp_path), NAME, 0, UNDO)
    write(tmp_path, "f")
    with pytest.raises(StorageFailure, match="cannot be restored to version 7") as caught:
        restore_table(str(tmp_path), NAME, 7, UNDO)
    assert "check that its data files exist" in caught.value.hint
    write(tmp_path, "g", mode="overwrite")
    for path in Path(location(str(tmp_path), NAME)).glob("*.parquet"):
        path.unlink()
    with pytest.raises(StorageFailure, match="cannot be restored to version 0"):
        restore_table(str(tmp_path), NAME, 0, UNDO)
    # Nothing has to be read to have no rows.
    restore_table(str(tmp_path), NAME, None, UNDO)
    assert callers(tmp_path) == []


@pytest.mark.parametrize(
    "name", [pytest.param("repo_files_v1", marks=pytest.mark.system), "cpg_nodes", "diagnostics_norm_v1"]
)
def test_spark_goes_on(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """Of tables that Spark has made, with a feed and without, and one with partitions of our own files."""
    lake = attacked(tmp_path, apart_lake(spark, tmp_path_factory))
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


def test_a_thread_of_its_own_asks_for_transactions(spark: SparkSession, tmp_path: Path) -> None:
    """Of a table with a checkpoint and without a checksum, Delta reads the state to answer."""
    write(tmp_path, "f")
    write(tmp_path, "g")
    DeltaTable(location(str(tmp_path), NAME)).create_checkpoint()
    restore_table(str(tmp_path), NAME, 0, UNDO)
    log = Store(spark, str(tmp_path)).log(NAME)

    def asked() -> tuple[int | None, int, int]:
        return log.transaction("run-8"), log.snapshot().version, log.size_bytes()

    with ThreadPoolExecutor(1) as pool:
        transaction, version, size = pool.submit(asked).result()
    assert (transaction, version) == (None, 2)
    assert size > 0


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
