from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from codeanatomy.catalog.spec import Column
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.checks import find_violation, rules_for, with_semantic_type
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import ConstraintViolation, SemanticTypeError
from support.delta_log import delta_log
from support.item_table import ITEMS, changed, frame, item, with_policy

MakeStore = Callable[..., Store]


BROKEN: tuple[tuple[dict[str, Any], str], ...] = (
    ({"bstart": 9, "bend": 2}, "span_ordered"),
    ({"bstart": 9, "bend": None}, "span_ordered"),
    ({"kind": None}, "kind_not_null"),
    ({"item_id": "no id"}, "item_id_is_NodeId"),
    ({"file_id": "node:0123456789012345678901"}, "file_id_is_FileId"),
    ({"bstart": -1}, "bstart_is_BytePos"),
)


def test_a_broken_row_stops_the_commit_and_is_shown(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    with pytest.raises(ConstraintViolation) as caught:
        append(store, "items", frame(spark, item(2), item(3, bstart=9, bend=2)), Commit("r2"))
    assert caught.value.violated == {"span_ordered": "bstart IS NULL OR bend >= bstart"}
    (sample,) = caught.value.samples
    assert sample.startswith("span_ordered: {")
    assert '"bstart":9,"bend":2' in sample
    assert delta_log(store, "items").snapshot().version == 0


def test_each_rule_catches_its_row(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    rules = rules_for(ITEMS, {})
    for fields, rule in BROKEN:
        found = find_violation(ITEMS, frame(spark, item(1), item(2, **fields)), rules)
        assert found is not None
        assert list(found.violated) == [rule]
        assert len(found.samples) == 1
    every = frame(spark, *(item(n, **fields) for n, (fields, _) in enumerate(BROKEN)))
    with pytest.raises(ConstraintViolation) as caught:
        append(store, "items", every, Commit("r1"))
    assert caught.value.violated
    assert set(caught.value.violated) <= {rule for _, rule in BROKEN}


# ITEMS with semantic types in a struct, in a list, and in a list in a list.
NESTED = changed(
    columns=(
        *ITEMS.columns[:-1],
        Column(
            "place",
            "struct",
            "Where it is.",
            fields=(Column("path", "string", "Its path.", semantic_type="Path"),),
        ),
        Column(
            "marks",
            "struct",
            "What was seen.",
            array=True,
            fields=(
                Column("line", "int", "1-based.", semantic_type="LineNo1"),
                Column("offsets", "bigint", "Where.", array=True, semantic_type="BytePos"),
                Column(
                    "names",
                    "struct",
                    "Names for it.",
                    array=True,
                    fields=(Column("name", "string", "Dotted.", semantic_type="QName"),),
                ),
            ),
        ),
    )
)


def nested_item(number: int, place: Any = None, **mark: Any) -> dict[str, Any]:
    """Return an item with two marks; the second one is given."""
    first = {"line": 1, "offsets": [0, None], "names": [{"name": "a.f"}, {"name": None}, None]}
    return item(number, place=place, marks=[first, {"line": None, "offsets": None, "names": None, **mark}])


NESTED_BROKEN: tuple[tuple[dict[str, Any], str], ...] = (
    ({"place": {"path": "/abs.py"}}, "place.path_is_Path"),
    ({"line": 0}, "marks.line_is_LineNo1"),
    ({"offsets": [3, -1]}, "marks.offsets_is_BytePos"),
    ({"names": [{"name": "b"}, {"name": ""}]}, "marks.names.name_is_QName"),
)


def test_values_in_lists_and_structs_are_checked(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(NESTED)
    good = (
        nested_item(1),
        nested_item(2, place={"path": "a.py"}, line=7, offsets=[4], names=[{"name": "b"}]),
        nested_item(3, place={"path": None}, names=[]),
        item(4, place=None, marks=[None]),
        item(5, place=None, marks=None),
    )
    assert append(store, "items", frame(spark, *good, table=NESTED), Commit("r1")).rows == len(good)
    rows = frame(spark, *good, nested_item(6, line=0), table=NESTED)
    with pytest.raises(ConstraintViolation) as caught:
        append(store, "items", rows, Commit("r2"))
    assert list(caught.value.violated) == ["marks.line_is_LineNo1"]
    (sample,) = caught.value.samples
    assert sample.startswith("marks.line_is_LineNo1: {")
    assert f'"item_id":"{item(6)["item_id"]}"' in sample
    assert delta_log(store, "items").snapshot().version == 0


def test_each_rule_of_a_nested_value_catches_its_row(spark: SparkSession) -> None:
    rules = rules_for(NESTED, {})
    assert find_violation(NESTED, frame(spark, nested_item(1), table=NESTED), rules) is None
    for fields, rule in NESTED_BROKEN:
        rows = frame(spark, nested_item(1), nested_item(2, **fields), table=NESTED)
        found = find_violation(NESTED, rows, rules)
        assert found is not None
        assert list(found.violated) == [rule]
        assert len(found.samples) == 1


def test_samples_are_few_even_if_every_row_is_broken(make_store: MakeStore, spark: SparkSession) -> None:
    rows = frame(spark, *(item(n, bstart=9, bend=2) for n in range(100)))
    with pytest.raises(ConstraintViolation) as caught:
        append(make_store(ITEMS), "items", rows, Commit("r1"))
    assert len(caught.value.samples) == 5


def test_rows_that_a_join_drops_are_not_checked(make_store: MakeStore, spark: SparkSession) -> None:
    """The check stands on the output: an early filter must not make it see more rows than are written."""
    store = make_store(ITEMS)
    rows = frame(spark, item(1), item(2, bstart=9, bend=2))
    wanted = frame(spark, item(1)).select("item_id")
    assert append(store, "items", rows.join(wanted, "item_id"), Commit("r1")).rows == 1


@pytest.mark.system
def test_constraints_of_the_delta_table_itself_count(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    spark.sql(f"ALTER TABLE delta.`{store.location('items')}` ADD CONSTRAINT light CHECK (weight < 5)")
    with pytest.raises(ConstraintViolation) as caught:
        append(store, "items", frame(spark, item(2, weight=7.0)), Commit("r2"))
    assert list(caught.value.violated) == ["delta.light"]
    assert '"weight":7.0' in caught.value.samples[0]


def test_a_column_that_means_something_else_is_refused(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    stored = scan(store, "items").rows
    swapped = stored.withColumn("file_id", F.col("item_id"))
    with pytest.raises(SemanticTypeError, match="file_id holds NodeId, not FileId"):
        append(store, "items", swapped, Commit("r2"))


def test_a_narrower_meaning_may_stand_for_a_wider_one(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    as_node = scan(store, "items").rows.withColumn("item_id", F.col("file_id"))
    assert append(store, "items", as_node, Commit("r2")).rows == 1


def test_meaning_can_be_said_explicitly(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    rows = scan(store, "items").rows
    said = rows.withColumn("file_id", F.col("item_id")).select(
        with_semantic_type("file_id", "FileId"), *(name for name in rows.columns if name != "file_id")
    )
    with pytest.raises(ConstraintViolation, match="file_id_is_FileId"):
        append(store, "items", said, Commit("r2"))


def test_a_refused_commit_does_not_evolve_the_table(make_store: MakeStore, spark: SparkSession) -> None:
    append(make_store(ITEMS), "items", frame(spark, item(1)), Commit("r1"))
    asking = make_store(with_policy(enable_features=("change_data_feed",)))
    with pytest.raises(ConstraintViolation):
        append(asking, "items", frame(spark, item(2, bstart=9, bend=2)), Commit("r2"))
    found = delta_log(asking, "items").snapshot()
    assert (found.version, found.min_writer_version) == (0, 2)
