from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.checks import find_violation, rules_for, with_semantic_type
from codeanatomy.delta.write.commit import append
from codeanatomy.errors import ConstraintViolation, SemanticTypeError
from support.item_table import ITEMS, frame, item, with_policy

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
    assert store.log("items").snapshot().version == 0


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
    found = asking.log("items").snapshot()
    assert (found.version, found.min_writer_version) == (0, 2)
