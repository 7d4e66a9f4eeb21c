"""Protocol features: off until the policy asks, then visible in the protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from codeanatomy.catalog.spec import DeltaSchemaPolicy, FeatureName
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.protocol import FEATURES
from codeanatomy.delta.read.open_table import open_table
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.evolve import evolve
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from support.item_table import ITEMS, changed, frame, item, with_policy
from support.marks import quick

MakeStore = Callable[..., Store]


def test_the_protocol_stays_at_1_2_until_asked(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(ITEMS)
    append(store, "items", frame(spark, item(1), item(2)), Commit("r1"))
    replace_by_owner(store, "items", frame(spark, item(4)), [item(4)["file_id"]], Commit("r4"))
    info = open_table(store, "items").info
    assert (info.min_reader_version, info.min_writer_version) == (1, 2)
    assert (info.reader_features, info.writer_features) == ((), ())


@pytest.mark.parametrize("existing", [False, True], ids=["new table", "existing table"])
@pytest.mark.parametrize("name", quick(FEATURES, 0, 1))
@pytest.mark.system
def test_each_feature_is_switched_on_by_policy(
    make_store: MakeStore, spark: SparkSession, name: FeatureName, existing: bool
) -> None:
    born = ITEMS if existing else with_policy(enable_features=(name,))
    append(make_store(born), "items", frame(spark, item(1)), Commit("r1"))
    asking = make_store(with_policy(enable_features=(name,)))
    info = evolve(asking, asking.table("items"))
    feature = FEATURES[name]
    if existing and name == "deletion_vectors":
        # A commit never changes which readers open a table.
        assert (info.version, info.reader_features) == (0, ())
        return
    assert info.properties[feature.property] == feature.value
    if feature.legacy is None:
        assert feature.delta_name in info.writer_features
    else:
        assert (info.min_reader_version, info.min_writer_version) == feature.legacy
    assert (info.version > 0) == existing
    again = evolve(asking, asking.table("items"))
    assert again.version == info.version, "what is on is not switched on again"
    assert scan(asking, "items").rows.count() == 1


@pytest.mark.system
def test_all_features_together(make_store: MakeStore, spark: SparkSession) -> None:
    store = make_store(with_policy(enable_features=tuple(FEATURES)))
    append(store, "items", frame(spark, item(1), item(2)), Commit("r1"))
    spark.sql(f"DELETE FROM delta.`{store.location('items')}` WHERE bstart = 1")
    info = open_table(store, "items").info
    assert (info.min_reader_version, info.min_writer_version) == (3, 7)
    assert {feature.delta_name for feature in FEATURES.values()} <= set(info.writer_features)
    assert scan(store, "items").rows.count() == 1


def test_column_mapping_mode_of_the_schema_policy(make_store: MakeStore, spark: SparkSession) -> None:
    table = changed(
        write=with_policy(enable_features=("column_mapping",)).write,
        schema=DeltaSchemaPolicy(column_mapping_mode="id"),
    )
    store = make_store(table)
    append(store, "items", frame(spark, item(1)), Commit("r1"))
    assert open_table(store, "items").info.properties["delta.columnMapping.mode"] == "id"
    assert scan(store, "items").rows.count() == 1


def test_a_feature_is_never_switched_off(make_store: MakeStore, spark: SparkSession) -> None:
    append(
        make_store(with_policy(enable_features=("change_data_feed",))),
        "items",
        frame(spark, item(1)),
        Commit("r1"),
    )
    append(make_store(ITEMS), "items", frame(spark, item(2)), Commit("r2"))
    assert open_table(make_store(ITEMS), "items").info.properties["delta.enableChangeDataFeed"] == "true"
