from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy.catalog.spec import Column, DeltaFeatureGate
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Event, GateChecked, Scanned
from codeanatomy.delta.read.open_table import open_table
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import GateError, PredicateError, TableMissing, UnknownName, UsageError
from support.item_table import ITEMS, changed, file_id, frame, item

MakeStore = Callable[..., Store]


@pytest.fixture(scope="module")
def three_versions(shared_store: MakeStore, spark: SparkSession) -> Store:
    """One row, two rows, three rows; to be read only."""
    store = shared_store(ITEMS)
    for number in (1, 2, 3):
        append(store, "items", frame(spark, item(number)), Commit(f"r{number}"))
    return store


def test_a_pin_reads_that_version(three_versions: Store) -> None:
    for version in (0, 1, 2):
        found = scan(three_versions, "items", version)
        assert (found.rows.count(), found.snapshot.version) == (version + 1, version)


def test_no_pin_is_the_newest_and_stays_there(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    found = scan(store, "items")
    append(store, "items", frame(spark, item(2)), Commit("r2"))
    assert found.rows.count() == 1
    assert scan(store, "items").rows.count() == 2


def test_a_time_is_resolved_to_a_version(three_versions: Store) -> None:
    second = open_table(three_versions, "items", 1).info
    moment = datetime.fromtimestamp(second.timestamp_ms / 1000, UTC)
    assert scan(three_versions, "items", moment).snapshot.version == 1
    assert scan(three_versions, "items", moment + timedelta(days=1)).snapshot.version == 2
    with pytest.raises(TableMissing, match="did not exist"):
        scan(three_versions, "items", moment - timedelta(days=1))
    with pytest.raises(UsageError, match="time zone"):
        scan(three_versions, "items", moment.replace(tzinfo=None))


def test_a_version_or_table_that_is_not_there(three_versions: Store, make_store: MakeStore) -> None:
    with pytest.raises(TableMissing, match="no version 99"):
        scan(three_versions, "items", 99)
    for nonsense in ("2020-01-01", True, -1, 2**70, 1.5):
        with pytest.raises(UsageError, match="is not a table version"):
            scan(three_versions, "items", nonsense)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="nothing"):
        scan(three_versions, "nothing")
    with pytest.raises(TableMissing, match="was never written"):
        scan(make_store(), "cpg_nodes")


def test_snapshot_info_tells_protocol_properties_and_schema(three_versions: Store) -> None:
    info = open_table(three_versions, "items", 1).info
    assert (info.min_reader_version, info.min_writer_version) == (1, 2)
    assert (info.reader_features, info.writer_features) == ((), ())
    assert info.partition_columns == ("kind",)
    assert info.properties["codeanatomy.ordering"] == "kind,file_id,bstart"
    assert '"semantic_type":"NodeId"' in info.schema_json


def test_the_stored_schema_has_comments_not_null_and_meaning(
    three_versions: Store, spark: SparkSession
) -> None:
    stored = spark.read.format("delta").load(three_versions.location("items"))
    field = stored.schema["item_id"]
    assert field.metadata == {"comment": "The item.", "semantic_type": "NodeId"}
    described = {
        row.col_name: row.comment
        for row in spark.sql(f"DESCRIBE TABLE delta.`{three_versions.location('items')}`").collect()
    }
    assert described["item_id"] == "The item."


def test_the_source_file_of_a_row_can_be_asked_for(three_versions: Store) -> None:
    rows = scan(three_versions, "items", file_column="source").rows
    for row in rows.collect():
        assert f"/kind={row.kind}/" in row.source
    with pytest.raises(UsageError, match="column"):
        scan(three_versions, "items", file_column="kind")


def test_a_scan_can_be_restricted_to_data_files(three_versions: Store, events: list[Event]) -> None:
    three_versions = replace(three_versions, record=events.append)
    every = scan(three_versions, "items", file_column="source").rows.collect()
    root = three_versions.location("items")
    some = [row for row in every if row.kind == "K1"]
    files = [str(Path(row.source.removeprefix("file:")).relative_to(root)) for row in some]
    found = scan(three_versions, "items", files=files)
    assert sorted(row.item_id for row in found.rows.collect()) == sorted(row.item_id for row in some)
    assert found.rows.columns == list(ITEMS.column_names)
    assert len(found.rows.inputFiles()) == len(files)
    last = [event for event in events if isinstance(event, Scanned)][-1]
    assert last.files == tuple(files)
    assert scan(three_versions, "items", files=[]).rows.count() == 0
    with pytest.raises(UnknownName, match="data file"):
        scan(three_versions, "items", files=["kind=K1/none.parquet"])


def test_a_table_that_fails_its_gate_is_refused(
    three_versions: Store, spark: SparkSession, events: list[Event]
) -> None:
    gated = changed(gate=DeltaFeatureGate(min_reader_version=3, required_reader_features=("columnMapping",)))
    store = replace(three_versions, tables=(gated,), record=events.append)
    with pytest.raises(GateError, match="reader version 1 < 3; feature columnMapping is not enabled"):
        scan(store, "items")
    # What a writer must find does not concern a reader.
    gated = changed(gate=DeltaFeatureGate(min_writer_version=7, required_writer_features=("rowTracking",)))
    store = replace(three_versions, tables=(gated,), record=events.append)
    assert scan(store, "items").snapshot.version == 2
    with pytest.raises(GateError, match="writer version 2 < 7; feature rowTracking is not enabled"):
        append(store, "items", frame(spark, item(4)), Commit("r4"))
    checks = [event for event in events if isinstance(event, GateChecked)]
    assert not checks[-1].passed
    assert checks[-1].problems
    assert open_table(three_versions, "items").info.version == 2


def test_missing_and_extra_columns_and_recorded_expressions(
    make_store: MakeStore, spark: SparkSession, events: list[Event]
) -> None:
    old = changed(columns=(*ITEMS.columns[:5], Column("gone", "string", "Of old.")))
    append(make_store(old), "items", frame(spark, item(1) | {"gone": "x"}, table=old), Commit("r1"))
    new = structs.replace(ITEMS, columns=(*ITEMS.columns, Column("added", "bigint", "New.")))
    found = scan(make_store(new), "items")
    row = found.rows.first()
    assert row is not None
    assert found.rows.columns == list(new.column_names)
    assert (row.weight, row.marks, row.added, row.bstart) == (1.0, None, None, 1)
    assert found.projection[-3:] == (
        "CAST(1.0 AS double)",
        "CAST(NULL AS array<struct<line:int,word:string>>)",
        "CAST(NULL AS bigint)",
    )
    assert [event for event in events if isinstance(event, Scanned)][-1].projection == found.projection


def test_a_pinned_scan_prunes_partitions_and_columns(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, *(item(n) for n in range(20))), Commit("r1"))
    rows = scan(store, "items").rows.where("kind = 'K1' AND file_id = 'x'").select("bstart")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert re.search(r"PartitionFilters: \[[^]]*\(kind#\d+ = K1\)\]", plan)
    assert "EqualTo(file_id,x)" in plan
    assert "marks" not in plan


@pytest.fixture(scope="module")
def items(shared_store: MakeStore, spark: SparkSession) -> Store:
    """Three commits of forty items each, apart from each other in both cluster columns."""
    store = shared_store(ITEMS)
    for number in range(3):
        rows = (item(each) for each in range(40 * number, 40 * number + 40))
        append(store, "items", frame(spark, *rows), Commit(f"r{number}"))
    return store


@pytest.mark.parametrize(
    ("where", "candidates"),
    [
        ("KIND = 'K1'", 3),
        ("bstart BETWEEN 45 AND 50", 2),
        ("kind = 'K1' AND NOT (bstart < 80)", 1),
        (f"file_id = '{file_id(5)}' AND bend > 50", None),
        ("bstart > 1000", 0),
        ("weight = 0.5 AND item_id IS NOT NULL", 6),
        ("size(marks) = 1 AND bstart = 3", 2),
        ("upper(kind) = 'K0'", 6),
    ],
)
def test_a_scan_reads_what_may_match(
    items: Store, events: list[Event], where: str, candidates: int | None
) -> None:
    store = recording(items, events)
    found = scan(store, "items", where=where)
    told_scan = events[-1]
    assert isinstance(told_scan, Scanned)
    expected = scan(store, "items").rows.where(where)
    assert sorted(found.rows.collect()) == sorted(expected.collect())
    read = found.rows.inputFiles()
    assert told_scan.total_files == 6
    assert told_scan.candidate_files == len(told_scan.files or read)
    assert {Path(path).name for path in read} <= {Path(path).name for path in told_scan.files or read}
    if candidates is not None:
        assert told_scan.candidate_files == candidates == len(read)
    assert told_scan.filter_columns
    # And one without a condition tells what there is.
    last = events[-1]
    assert isinstance(last, Scanned)
    assert (last.total_files, last.candidate_files, last.pushed_filters) == (6, 6, ())


def recording(store: Store, events: list[Event]) -> Store:
    return Store(store.spark, store.root, store.tables, events.append)


def test_a_scan_refuses_what_is_no_condition(items: Store) -> None:
    with pytest.raises(PredicateError, match="no column nope"):
        scan(items, "items", where="nope = 1")
    with pytest.raises(PredicateError, match="subquery"):
        scan(items, "items", where="bstart IN (SELECT 1)")
    with pytest.raises(PredicateError, match="Spark rejects the condition"):
        scan(items, "items", where="bstart + 1")


@pytest.mark.system
def test_a_scan_of_renamed_columns_and_vectors(
    make_store: MakeStore, spark: SparkSession, events: list[Event]
) -> None:
    """Column mapping, deletion vectors, texts cut by Spark, and rows from before a column had its name."""
    old = changed(
        write=structs.replace(
            ITEMS.write,
            enable_features=("column_mapping", "deletion_vectors"),
            stats_columns=("file_id", "bstart", "item_id"),
        ),
        schema=structs.replace(ITEMS.schema, column_mapping_mode="name"),
    )
    store = make_store(old)
    for number in range(2):
        long = (item(each, item_id=f"{'t' * 30}:{each:022}") for each in range(40 * number, 40 * number + 40))
        append(store, "items", frame(spark, *long, table=old), Commit(f"r{number}"))
    location = store.location("items")
    spark.sql(f"DELETE FROM delta.`{location}` WHERE bstart IN (3, 5, 50)")
    spark.sql(f"ALTER TABLE delta.`{location}` RENAME COLUMN bstart TO first_byte")
    columns = tuple(
        structs.replace(each, name="first_byte") if each.name == "bstart" else each for each in old.columns
    )
    write = structs.replace(old.write, zorder_by=("file_id",), stats_columns=("file_id", "item_id"))
    renamed = make_store(structs.replace(old, columns=columns, constraints=(), write=write))
    every = scan(renamed, "items").rows
    for where, candidates in (
        ("first_byte < 10", 2),
        ("first_byte = 3", 2),
        ("first_byte > 100", 0),
        ("NOT first_byte < 40", 2),
        (f"item_id = '{'t' * 30}:{7:022}'", 4),
        (f"item_id > '{'u' * 40}'", 0),
        ("kind = 'K0'", 2),
        ("first_byte IS NULL", 0),
    ):
        found = scan(renamed, "items", where=where)
        last = events[-1]
        assert isinstance(last, Scanned)
        assert sorted(found.rows.collect()) == sorted(every.where(where).collect())
        assert (last.total_files, last.candidate_files) == (4, candidates), where
