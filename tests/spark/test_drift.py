"""Schemas that have drifted from the contract, at both boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from codeanatomy.catalog.spec import Column, DeltaSchemaPolicy, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Event, TableAltered
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.errors import ContractError, SchemaDrift
from support.delta_log import delta_log
from support.item_table import ITEMS, changed, frame, item

MakeStore = Callable[..., Store]

ADDED = Column("added", "string", "New.", default="none")
MARKS_PLUS = Column(
    "marks",
    "struct",
    "What was seen.",
    array=True,
    fields=(
        Column("column", "int", "0-based."),
        Column("word", "string", "As written."),
        Column("line", "bigint", "1-based."),
    ),
)

MARKS_PLUS_SAME_TYPES = structs.replace(
    MARKS_PLUS, fields=(*MARKS_PLUS.fields[:2], Column("line", "int", "1-based."))
)


def with_columns(*columns: Column, **fields: Any) -> Table:
    """ITEMS where the given columns replace those of the same name, or come last."""
    given = {column.name: column for column in columns}
    kept = [given.pop(column.name, column) for column in ITEMS.columns]
    return changed(columns=(*kept, *given.values()), **fields)


def mode(name: str | None) -> DeltaSchemaPolicy:
    return DeltaSchemaPolicy(schema_mode=name)  # type: ignore[arg-type]


def test_rows_may_come_in_any_column_order(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    rows = frame(spark, item(1)).select(*reversed(ITEMS.column_names))
    append(store, "items", rows, Commit("r1"))
    assert scan(store, "items").rows.first() == frame(spark, item(1)).first()


def test_missing_columns_get_their_default_or_null(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)).drop("weight", "marks"), Commit("r1"))
    row = scan(store, "items").rows.first()
    assert row is not None
    assert (row.weight, row.marks) == (1.0, None)


def test_a_missing_column_that_may_not_be_null_is_an_error(
    make_store: MakeStore, spark: SparkSession
) -> None:
    with pytest.raises(ContractError, match=r"items\.kind is missing"):
        append(make_store(ITEMS), "items", frame(spark, item(1)).drop("kind"), Commit("r1"))


def test_extra_columns_are_dropped_and_reported(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", frame(spark, item(1)).withColumn("note", F.lit("x")), Commit("r1"))
    assert done.dropped_columns == ("note",)
    assert "note" not in scan(store, "items").rows.columns


def test_narrower_rows_are_widened(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    rows = frame(spark, item(1)).withColumn("bstart", F.col("bstart").cast("smallint"))
    append(store, "items", rows.withColumn("weight", F.lit(3).cast("float")), Commit("r1"))
    row = scan(store, "items").rows.first()
    assert row is not None
    assert (row.bstart, row.weight) == (1, 3.0)


@pytest.fixture(scope="module")
def narrowed(shared_store: MakeStore) -> Store:
    return shared_store(ITEMS)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("7L", True),
        ("7.0D", True),
        ("7.5D", False),
        ("7.0", True),
        ("7.5", False),
        ("'7'", True),
        ("'seven'", False),
        ("'NaN'", False),
    ],
)
def test_wider_rows_are_narrowed_only_if_nothing_is_lost(
    narrowed: Store, spark: SparkSession, value: str, fits: bool
) -> None:
    store = narrowed
    rows = frame(spark, item(1, bstart=None)).withColumn("bstart", F.expr(value)).withColumn("bend", F.lit(9))
    if fits:
        replace_by_owner(store, "items", rows, [item(1)["file_id"]], Commit(value))
        assert [row.bstart for row in scan(store, "items").rows.collect()] == [7]
    else:
        with pytest.raises(ContractError, match=r"items\.bstart: .* is not a valid bigint"):
            append(store, "items", rows, Commit(value))


@pytest.mark.parametrize(
    "value", ["array(1)", "named_struct('a', 1)", "map('a', 1)", "current_timestamp()", "true", "X'00'"]
)
def test_a_type_without_a_cast_is_an_error_that_names_the_column(
    make_store: MakeStore, spark: SparkSession, value: str
) -> None:
    rows = frame(spark, item(1)).withColumn("bstart", F.expr(value))
    with pytest.raises(ContractError, match=r"items\.bstart has type .* cannot be cast to bigint"):
        append(make_store(ITEMS), "items", rows, Commit("r1"))


def test_nested_fields_are_matched_by_name(make_store: MakeStore, spark: SparkSession) -> None:
    """Spark casts structs by position: a reordered field would silently swap values."""
    store = make_store(ITEMS)
    swapped = F.expr("transform(marks, m -> named_struct('word', m.word, 'line', bigint(m.line), 'x', 1))")
    rows = frame(spark, item(1), item(2, marks=None), item(3, marks=[None])).withColumn("marks", swapped)
    append(store, "items", rows.withColumn("marks", F.expr("IF(bstart = 2, NULL, marks)")), Commit("r1"))
    marks = {row.bstart: row.marks for row in scan(store, "items").rows.collect()}
    assert [tuple(mark) for mark in marks[1]] == [(1, "w1")]
    assert marks[2] is None
    assert [tuple(mark) for mark in marks[3]] == [(None, None)]


def test_a_scan_reads_reordered_and_widened_nested_fields(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1), item(3, marks=[])), Commit("r1"))
    wider = scan(make_store(with_columns(MARKS_PLUS)), "items").rows
    marks = {row.bstart: [tuple(mark) for mark in row.marks] for row in wider.collect()}
    assert marks == {1: [(None, "w1", 1)], 3: []}


def test_a_scan_names_the_column_of_a_value_that_does_not_fit(
    make_store: MakeStore, spark: SparkSession
) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1, bstart=2**40, bend=2**41)), Commit("r1"))
    narrow = make_store(with_columns(Column("bstart", "int", "First byte.")))
    with pytest.raises(SparkRuntimeException, match=r"items\.bstart: 1099511627776 is not a valid int"):
        scan(narrow, "items").rows.collect()


def test_merge_mode_adds_columns_and_keeps_old_rows(
    make_store: MakeStore, spark: SparkSession, events: list[Event]
) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    newer = with_columns(ADDED)
    store = make_store(newer)
    append(store, "items", frame(spark, item(2) | {"added": "yes"}, table=newer), Commit("r2"))
    assert {row.bstart: row.added for row in scan(store, "items").rows.collect()} == {1: None, 2: "yes"}
    altered = [event for event in events if isinstance(event, TableAltered) and event.added_columns]
    assert [event.added_columns for event in altered] == [("added",)]


def test_merge_mode_adds_nested_fields(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    fields = (*ITEMS.column("marks").fields, Column("column", "int", "0-based."))
    newer = with_columns(Column("marks", "struct", "What was seen.", array=True, fields=fields))
    store = make_store(newer)
    rows = frame(spark, item(2, marks=[{"line": 2, "word": "w", "column": 4}]), table=newer)
    append(store, "items", rows, Commit("r2"))
    marks = {row.bstart: tuple(row.marks[0]) for row in scan(store, "items").rows.collect()}
    assert marks == {1: (1, "w1", None), 2: (2, "w", 4)}


def test_merge_mode_does_not_change_types(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    other = with_columns(Column("weight", "string", "How much."))
    with pytest.raises(SchemaDrift, match="weight"):
        append(make_store(other), "items", frame(spark, item(2, weight="1"), table=other), Commit("r2"))


def test_no_mode_refuses_any_change(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    strict = with_columns(ADDED, schema=mode(None))
    with pytest.raises(SchemaDrift, match="allows no change"):
        append(make_store(strict), "items", frame(spark, item(2), table=strict), Commit("r2"))


@pytest.mark.system
def test_fields_in_another_order_are_no_drift(make_store: MakeStore, spark: SparkSession) -> None:
    """A field that merge mode added stands last in the table, wherever the contract has it."""
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    newer = with_columns(MARKS_PLUS_SAME_TYPES)
    store = make_store(newer)
    first = append(store, "items", frame(spark, item(2, marks=[]), table=newer), Commit("r2"))
    second = append(store, "items", frame(spark, item(3, marks=[]), table=newer), Commit("r3"))
    assert second.version == first.version + 1


@pytest.mark.system
def test_a_new_column_may_have_statistics_at_once(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    newer = with_columns(ADDED, write=structs.replace(ITEMS.write, stats_columns=("file_id", "added")))
    store = make_store(newer)
    append(store, "items", frame(spark, item(2) | {"added": "x"}, table=newer), Commit("r2"))
    assert (
        delta_log(store, "items").snapshot().properties["delta.dataSkippingStatsColumns"] == "file_id,added"
    )


def test_a_refused_commit_leaves_no_trace(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    strict = with_columns(ADDED, schema=mode(None))
    with pytest.raises(SchemaDrift):
        append(make_store(strict), "items", frame(spark, item(2), table=strict), Commit("r2"))
    assert delta_log(make_store(ITEMS), "items").snapshot().version == 0


@pytest.mark.system
def test_a_default_of_a_column_that_may_not_be_null_also_serves_old_rows(
    make_store: MakeStore, spark: SparkSession
) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    newer = with_columns(structs.replace(ADDED, nullable=False))
    store = make_store(newer)
    assert [row.added for row in scan(store, "items").rows.collect()] == ["none"]
    append(store, "items", frame(spark, item(2) | {"added": "yes"}, table=newer), Commit("r2"))
    assert {row.bstart: row.added for row in scan(store, "items").rows.collect()} == {1: "none", 2: "yes"}


def test_names_are_not_told_by_case(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    done = append(store, "items", frame(spark, item(1)).withColumnRenamed("bstart", "BStart"), Commit("r1"))
    assert (done.rows, done.dropped_columns) == (1, ())
    assert [row.bstart for row in scan(store, "items").rows.collect()] == [1]
    twice = frame(spark, item(1)).select("*", F.lit(2).alias("BSTART"))
    with pytest.raises(ContractError, match="duplicate columns for items: BSTART, bstart"):
        append(store, "items", twice, Commit("r2"))


@pytest.mark.system
def test_an_untyped_null_fits_every_column(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    rows = frame(spark, item(1)).withColumn("marks", F.lit(None)).withColumn("weight", F.lit(None))
    append(store, "items", rows, Commit("r1"))
    append(store, "items", frame(spark, item(2)).withColumn("marks", F.expr("array()")), Commit("r2"))
    assert {row.bstart: row.marks for row in scan(store, "items").rows.collect()} == {1: None, 2: []}
