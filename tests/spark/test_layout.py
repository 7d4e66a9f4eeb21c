"""Policies proven from the files that a commit leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as LightTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from codeanatomy import catalog
from codeanatomy.catalog.spec import MB, BloomFilter, Table, WriterProperties
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.sql_functions import register_functions
from support.delta_log import delta_log
from support.item_table import ITEMS, file_id, frame, item, with_policy

MakeStore = Callable[..., Store]


def adds(store: Store, version: int) -> list[dict[str, Any]]:
    """The files a version added, statistics parsed."""
    log = Path(store.location("items")) / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    found = [action["add"] for action in actions if "add" in action]
    return [{**add, "stats": json.loads(add["stats"]) if "stats" in add else None} for add in found]


def files(store: Store, version: int) -> list[Path]:
    return [Path(store.location("items")) / add["path"] for add in adds(store, version)]


def shuffled(spark: SparkSession, count: int) -> Any:
    """Items in an order that is not theirs."""
    return frame(spark, *sorted((item(n) for n in range(count)), key=lambda row: row["item_id"]))


def test_partitions_and_order_inside_files(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", shuffled(spark, 300).repartition(7), Commit("r1"))
    written = files(store, done.version)
    assert {path.parent.name for path in written} == {"kind=K0", "kind=K1"}
    for path in written:
        rows = pq.ParquetFile(path).read(columns=["file_id", "bstart"]).to_pylist()
        keys = [(row["file_id"], row["bstart"]) for row in rows]
        assert len(keys) > 50
        assert keys == sorted(keys)


def test_the_same_rows_make_the_same_files(make_store: MakeStore, spark: SparkSession) -> None:
    tied = frame(spark, *(item(n, bstart=1, bend=2, file_id=file_id(0)) for n in range(60)))
    store, seen = make_store(ITEMS), []
    for partitions in (1, 7):
        rows = tied.repartition(partitions)
        done = replace_by_owner(store, "items", rows, [file_id(0)], Commit(f"r{partitions}"))
        content = [
            pq.ParquetFile(path).read() for path in sorted(files(store, done.version), key=lambda p: p.parent)
        ]
        seen.append([table.to_pylist() for table in content])
    assert seen[0] == seen[1]


def test_statistics_are_of_exactly_the_chosen_columns(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", shuffled(spark, 20), Commit("r1"))
    for add in adds(store, done.version):
        assert set(add["stats"]["minValues"]) == {"file_id", "bstart"}
        assert set(add["stats"]["maxValues"]) == {"file_id", "bstart"}
        assert set(add["stats"]["nullCount"]) == {"file_id", "bstart"}


def test_automatic_statistics_are_of_the_cluster_columns(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(with_policy(stats_policy="auto", stats_columns=()))
    done = append(store, "items", shuffled(spark, 20), Commit("r1"))
    for add in adds(store, done.version):
        assert set(add["stats"]["minValues"]) == {"file_id", "bstart"}


def test_no_statistics_where_the_policy_is_off(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(with_policy(stats_policy="off"))
    done = append(store, "items", shuffled(spark, 20), Commit("r1"))
    for add in adds(store, done.version):
        assert set(add["stats"]) <= {"numRecords", "minValues", "maxValues", "nullCount", "tightBounds"}
        assert not any(add["stats"].get(key) for key in ("minValues", "maxValues", "nullCount"))


def test_bloom_filter_dictionary_and_compression_in_the_footer(
    make_store: MakeStore, spark: SparkSession
) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", shuffled(spark, 300), Commit("r1"))
    for path in files(store, done.version):
        group = pq.ParquetFile(path).metadata.row_group(0)
        columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
        assert columns["item_id"].bloom_filter_length > 0
        assert columns["file_id"].bloom_filter_length is None
        assert not columns["item_id"].has_dictionary_page
        assert columns["file_id"].has_dictionary_page
        assert {column.compression for column in columns.values()} == {"ZSTD"}


@pytest.mark.system
def test_bloom_filters_do_not_swell_small_files(make_store: MakeStore, spark: SparkSession) -> None:
    plain = make_store(with_policy(writer=WriterProperties()))
    without = append(plain, "items", shuffled(spark, 100), Commit("r1"))
    filtered = make_store(with_policy(writer=WriterProperties(bloom_filters=(BloomFilter("item_id"),))))
    done = append(filtered, "items", shuffled(spark, 100), Commit("r2"))
    assert done.size_bytes < without.size_bytes + done.files * 2048


def test_other_writer_properties_reach_the_footer(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(with_policy(writer=WriterProperties(dictionary=False, compression="gzip")))
    done = append(store, "items", shuffled(spark, 50), Commit("r1"))
    for path in files(store, done.version):
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        assert (column.compression, column.has_dictionary_page) == ("GZIP", False)


@pytest.mark.system
def test_files_reach_their_size_and_do_not_overlap(make_store: MakeStore, spark: SparkSession) -> None:
    target = 2 * MB
    store = make_store(with_policy(target_file_size=target, partition_by=()))
    register_functions(spark)
    rows = spark.range(400_000).select(
        F.concat(F.lit("item:"), F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 22)).alias(
            "item_id"
        ),
        F.lit("K").alias("kind"),
        F.expr("node_id('FILE', definition_key('r', string(id % 4000)))").alias("file_id"),
        F.col("id").alias("bstart"),
        (F.col("id") + 1).alias("bend"),
    )
    done = append(store, "items", rows, Commit("r1"))
    sizes = sorted(add["size"] for add in adds(store, done.version))
    assert done.rows == 400_000
    assert done.size_bytes > 3 * target
    assert 0.5 * target <= median(sizes) <= 1.5 * target
    assert max(sizes) <= 2 * target
    spans = sorted(
        (add["stats"]["minValues"]["file_id"], add["stats"]["maxValues"]["file_id"])
        for add in adds(store, done.version)
    )
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


def test_a_small_table_is_one_file(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(with_policy(partition_by=()))
    done = append(store, "items", shuffled(spark, 500).repartition(9), Commit("r1"))
    assert done.files == 1


def test_a_changed_policy_reaches_the_table_and_its_next_files(
    make_store: MakeStore, spark: SparkSession
) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    store = make_store(with_policy(stats_columns=("bend",), writer=WriterProperties()))
    done = append(store, "items", frame(spark, item(3)), Commit("r2"))
    properties = delta_log(store, "items").snapshot().properties
    assert properties["delta.dataSkippingStatsColumns"] == "bend"
    assert not any("bloom" in key for key in properties)
    (add,) = adds(store, done.version)
    assert set(add["stats"]["minValues"]) == {"bend"}


@pytest.mark.system
def test_rows_of_other_owners_keep_their_order(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", shuffled(spark, 200), Commit("r1"))
    done = replace_by_owner(store, "items", frame(spark, item(3)), [file_id(0)], Commit("r2"))
    for path in files(store, done.version):
        keys = [tuple(row.values()) for row in pq.ParquetFile(path).read(["file_id", "bstart"]).to_pylist()]
        assert keys == sorted(keys)


def test_light_readers_read_what_we_write(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", shuffled(spark, 30), Commit("r1"))
    light = LightTable(store.location("items"))
    assert (light.protocol().min_reader_version, light.protocol().min_writer_version) == (1, 2)
    items = light.to_pyarrow_table()
    assert sorted(items.column("bstart").to_pylist()) == list(range(30))
    counted = duckdb.sql("SELECT kind, count(*) FROM items GROUP BY kind ORDER BY kind").fetchall()
    assert counted == [("K0", 15), ("K1", 15)]


@pytest.mark.parametrize(
    "tables",
    [catalog.TABLES[::3], pytest.param(catalog.TABLES, marks=pytest.mark.system)],
    ids=["some", "all"],
)
@pytest.mark.system
def test_every_table_of_the_catalogue_can_be_born_from_eight_threads(
    make_store: MakeStore, spark: SparkSession, tables: tuple[Table, ...]
) -> None:
    store = make_store()

    def bear(table: Table) -> None:
        rows = spark.createDataFrame([], spark_schema(table))
        done = append(store, table.name, rows, Commit("r1"))
        assert (done.version, done.created, done.rows) == (0, True, 0)
        info = delta_log(store, table.name).snapshot()
        features = table.write.enable_features
        old = (1, 4 if "change_data_feed" in features else 2)
        expected = (3, 7) if "deletion_vectors" in features else old
        assert (info.min_reader_version, info.min_writer_version) == expected
        stored = json.loads(info.schema_json)["fields"]
        assert [field["name"] for field in stored] == list(table.column_names)
        required = [field["name"] for field in stored if not field["nullable"]]
        assert required == [column.name for column in table.columns if not column.nullable]
        assert info.partition_columns == table.write.partition_by

    with ThreadPoolExecutor(8) as threads:
        assert len(list(threads.map(bear, tables))) == len(tables) > 8
