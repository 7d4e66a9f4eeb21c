"""Policies into Delta's terms, without a JVM: statistics, properties, features and gates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codeanatomy import catalog
from codeanatomy.catalog.spec import (
    MB,
    BloomFilter,
    Column,
    DeltaFeatureGate,
    DeltaSchemaPolicy,
    DeltaWritePolicy,
    FeatureName,
    Table,
    WriterProperties,
)
from codeanatomy.delta.events import Event, GateChecked
from codeanatomy.delta.gate import check_gate, gate_problems
from codeanatomy.delta.layout import (
    MANAGED,
    contract_hash,
    feature_properties,
    resolve_stats_columns,
    table_properties,
)
from codeanatomy.delta.log.protocol import FEATURES
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.errors import GateError

COLUMNS = (
    Column("kind", "string", "Partition.", nullable=False),
    Column("id", "string", "Key.", nullable=False),
    Column("line", "int", "Number."),
    Column("size", "bigint", "Number."),
    Column("score", "double", "Number."),
    Column("at", "timestamp", "Time."),
    Column("flag", "boolean", "No minimum worth keeping."),
    Column("blob", "binary", "Bytes."),
    Column("tags", "string", "List.", array=True),
    Column("place", "struct", "Nested.", fields=(Column("line", "int", "Inside."),)),
    Column("props", "map<string,string>", "Map."),
)
EVERY = tuple(column.name for column in COLUMNS)
MEASURED = ("id", "line", "size", "score", "at")


def things(**write: object) -> Table:
    policy = replace(DeltaWritePolicy(), **write)
    return Table("things", "extract", "One row per thing.", COLUMNS, ("id",), write=policy)


def snapshot(
    reader: int = 1, writer: int = 2, features: Sequence[str] = (), properties: dict[str, str] | None = None
) -> SnapshotInfo:
    return SnapshotInfo(
        location="/lake/extract/things",
        version=3,
        timestamp_ms=0,
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=(),
        writer_features=tuple(features),
        properties=properties or {},
        schema_json="{}",
        partition_columns=(),
    )


# Statistics


@pytest.mark.parametrize(
    ("write", "chosen"),
    [
        ({"stats_policy": "off", "stats_columns": ("id",), "zorder_by": ("line",)}, ()),
        ({"stats_policy": "explicit", "stats_columns": ("size", "id")}, ("size", "id")),
        ({"stats_policy": "explicit", "stats_columns": ("size",), "zorder_by": ("id",)}, ("size",)),
        ({"stats_policy": "auto"}, ()),
        ({"stats_policy": "auto", "stats_columns": ("size",)}, ()),
        ({"stats_policy": "auto", "zorder_by": ("line", "id")}, ("line", "id")),
        # The log has the values of partition columns; the files have none.
        ({"partition_by": ("kind",), "zorder_by": ("kind", "id")}, ("id",)),
        ({"stats_policy": "explicit", "stats_columns": ("kind", "id"), "partition_by": ("kind",)}, ("id",)),
        # Delta keeps no minimum of these.
        ({"stats_policy": "explicit", "stats_columns": EVERY, "partition_by": ("kind",)}, MEASURED),
        # What the schema does not have is left out.
        ({"stats_policy": "auto", "zorder_by": ("id", "gone", "line", "place.line")}, ("id", "line")),
    ],
)
def test_statistics_are_of_the_chosen_columns(write: dict[str, object], chosen: tuple[str, ...]) -> None:
    assert resolve_stats_columns(things(**write)) == chosen


def test_the_cap_keeps_the_first() -> None:
    table = things(zorder_by=("size", "id", "score", "at"), stats_max_columns=3)
    assert resolve_stats_columns(table) == ("size", "id", "score")


def test_the_cap_counts_only_columns_that_get_statistics() -> None:
    table = things(partition_by=("kind",), zorder_by=("kind", "blob", "id", "line"), stats_max_columns=2)
    assert resolve_stats_columns(table) == ("id", "line")


def test_no_statistics_under_a_cap_of_none() -> None:
    assert resolve_stats_columns(things(zorder_by=("id",), stats_max_columns=0)) == ()


@given(
    st.sampled_from(["off", "explicit", "auto"]),
    st.lists(st.sampled_from(EVERY), unique=True),
    st.integers(0, 5),
)
def test_statistics_are_bounded_and_possible(policy: str, clustered: list[str], cap: int) -> None:
    table = things(
        stats_policy=policy,
        partition_by=("kind",),
        zorder_by=tuple(clustered),
        stats_columns=tuple(clustered),
        stats_max_columns=cap,
    )
    chosen = resolve_stats_columns(table)
    assert len(chosen) <= cap
    assert set(chosen) <= set(MEASURED)
    assert len(set(chosen)) == len(chosen)


@pytest.mark.parametrize("table", catalog.TABLES, ids=lambda table: table.name)
def test_declared_statistics_survive(table: Table) -> None:
    chosen = resolve_stats_columns(table)
    wanted = table.write.stats_columns if table.write.stats_policy == "explicit" else table.ordering
    assert chosen == tuple(name for name in wanted if name not in table.write.partition_by)


# Properties


def test_properties_say_the_whole_policy() -> None:
    writer = WriterProperties(dictionary_off=("size",))
    table = things(target_file_size=64 * MB, partition_by=("kind",), zorder_by=("id",), writer=writer)
    assert table_properties(table) == {
        "codeanatomy.table": "things",
        "codeanatomy.contract": contract_hash(table),
        "codeanatomy.contractVersion": "1",
        "codeanatomy.ordering": "kind,id",
        "codeanatomy.primaryKey": "id",
        "codeanatomy.targetFileSize": "67108864",
        "delta.setTransactionRetentionDuration": "interval 30 days",
        "delta.checkpointInterval": "10",
        "delta.deletedFileRetentionDuration": "interval 168 hours",
        "delta.logRetentionDuration": "interval 720 hours",
        "delta.enableExpiredLogCleanup": "false",
        "delta.dataSkippingStatsColumns": "id",
        "parquet.enable.dictionary": "true",
        "parquet.enable.dictionary#size": "false",
    }


def test_a_bloom_filter_takes_the_place_of_the_dictionary() -> None:
    blooms = (BloomFilter("id", fpp=0.05, ndv=1000), BloomFilter("size"))
    writer = WriterProperties(bloom_filters=blooms, dictionary_off=("line", "id"))
    properties = table_properties(things(writer=writer))
    assert columns_of(properties, "parquet.bloom.filter.enabled#", "true") == ["id", "size"]
    assert columns_of(properties, "parquet.enable.dictionary#", "false") == ["id", "line", "size"]
    assert properties["parquet.bloom.filter.fpp#id"] == "0.05"
    assert properties["parquet.bloom.filter.fpp#size"] == "0.01"


def columns_of(properties: dict[str, str], prefix: str, value: str) -> list[str]:
    return sorted(
        key.removeprefix(prefix) for key in properties if key.startswith(prefix) and properties[key] == value
    )


def test_no_statistics_is_said_too() -> None:
    properties = table_properties(things())
    assert properties["delta.dataSkippingNumIndexedCols"] == "0"
    assert "delta.dataSkippingStatsColumns" not in properties


def test_without_bloom_filters_nothing_is_said_of_them() -> None:
    assert not [key for key in table_properties(things()) if "bloom" in key]


def test_no_dictionary_at_all() -> None:
    properties = table_properties(things(writer=WriterProperties(dictionary=False)))
    assert properties["parquet.enable.dictionary"] == "false"


@pytest.mark.parametrize("table", catalog.TABLES, ids=lambda table: table.name)
def test_every_property_is_managed_text(table: Table) -> None:
    properties = table_properties(table)
    assert all(key.startswith(MANAGED) for key in properties)
    assert all(isinstance(value, str) for value in properties.values())
    # Features are asked for elsewhere, and only when they are missing.
    assert not properties.keys() & {feature.property for feature in FEATURES.values()}


def test_the_contract_is_what_readers_rely_on() -> None:
    digest = contract_hash(things())
    first, *rest = COLUMNS
    for columns in (
        tuple(rest),
        (replace(first, name="other"), *rest),
        (replace(first, nullable=not first.nullable), *rest),
        (replace(first, semantic_type="QName"), *rest),
    ):
        assert contract_hash(replace(things(), columns=columns)) != digest
    for change in (
        {"doc": "Another."},
        {"write": DeltaWritePolicy(zorder_by=("id",))},
        {"columns": tuple(reversed(COLUMNS))},
    ):
        assert contract_hash(replace(things(), **change)) == digest


# Features


def versions(reader: int, writer: int) -> dict[str, str]:
    return {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(writer)}


CDF = {"delta.enableChangeDataFeed": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.mark.parametrize(
    ("features", "properties"),
    [
        ((), {}),
        (("change_data_feed",), {**CDF, **versions(1, 4)}),
        (("column_mapping",), {**MAPPING, **versions(2, 5)}),
        (("change_data_feed", "column_mapping"), {**CDF, **MAPPING, **versions(2, 5)}),
        (("column_mapping", "change_data_feed"), {**CDF, **MAPPING, **versions(2, 5)}),
        # Delta upgrades to table features by itself; a number of ours would only be in the way.
        (("deletion_vectors",), VECTORS),
        (("change_data_feed", "deletion_vectors"), {**CDF, **VECTORS}),
        (("row_tracking",), {"delta.enableRowTracking": "true"}),
        (("in_commit_timestamps",), {"delta.enableInCommitTimestamps": "true"}),
        (("v2_checkpoints",), {"delta.checkpointPolicy": "v2"}),
    ],
)
def test_a_new_table_asks_for_its_features(
    features: tuple[FeatureName, ...], properties: dict[str, str]
) -> None:
    assert feature_properties(things(enable_features=features), None) == properties
    # A stored table without them is asked for the same, but for deletion vectors: it keeps its readers.
    others = tuple(name for name in features if name != "deletion_vectors")
    asked = feature_properties(things(enable_features=others), None)
    assert feature_properties(things(enable_features=features), snapshot()) == asked


def test_every_feature_of_the_catalogue_can_be_asked_for() -> None:
    assert set(FEATURES) == set(FeatureName.__args__)  # type: ignore[attr-defined]


def test_the_mapping_mode_of_the_schema_policy_wins() -> None:
    mapped = DeltaSchemaPolicy(column_mapping_mode="id")
    table = replace(things(enable_features=("column_mapping",)), schema=mapped)
    assert feature_properties(table, None) == {"delta.columnMapping.mode": "id", **versions(2, 5)}


def test_what_a_table_has_is_not_asked_for_again() -> None:
    table = things(enable_features=("change_data_feed", "column_mapping"))
    assert feature_properties(table, snapshot(2, 5, properties={**CDF, **MAPPING})) == {}
    assert feature_properties(table, snapshot(1, 4, properties=CDF)) == {**MAPPING, **versions(2, 5)}


def test_protocol_numbers_never_go_down() -> None:
    table = things(enable_features=("change_data_feed",))
    assert feature_properties(table, snapshot(2, 5)) == {**CDF, **versions(2, 5)}


def test_a_table_with_table_features_keeps_to_them() -> None:
    table = things(enable_features=("change_data_feed",))
    assert feature_properties(table, snapshot(3, 7, ["deletionVectors"])) == CDF


# Gates


@pytest.mark.parametrize(
    ("gate", "problems"),
    [
        (DeltaFeatureGate(), ()),
        (DeltaFeatureGate(min_reader_version=2, min_writer_version=5), ()),
        (DeltaFeatureGate(min_reader_version=3), ("reader version 2 < 3",)),
        (DeltaFeatureGate(min_writer_version=7), ("writer version 5 < 7",)),
        (DeltaFeatureGate(required_reader_features=("a",), required_writer_features=("b",)), ()),
        (DeltaFeatureGate(required_reader_features=("x", "a")), ("feature x is not enabled",)),
        (DeltaFeatureGate(required_writer_features=("y",)), ("feature y is not enabled",)),
        # Old writer versions have features by their number.
        (DeltaFeatureGate(required_writer_features=("changeDataFeed", "invariants")), ()),
        (
            DeltaFeatureGate(3, 7, ("x", "y"), ("y", "z")),
            (
                "reader version 2 < 3",
                "writer version 5 < 7",
                "feature x is not enabled",
                "feature y is not enabled",
                "feature z is not enabled",
            ),
        ),
    ],
)
def test_a_gate_names_everything_that_is_missing(gate: DeltaFeatureGate, problems: tuple[str, ...]) -> None:
    assert gate_problems(gate, reader=2, writer=5, features=("a", "b")) == problems


def test_a_gate_is_for_features_of_every_protocol() -> None:
    gate = DeltaFeatureGate(required_writer_features=("changeDataFeed",))
    assert gate_problems(gate, 1, 4, ()) == gate_problems(gate, 3, 7, ("changeDataFeed",)) == ()
    for reader, writer in ((1, 2), (3, 7)):
        assert gate_problems(gate, reader, writer, ()) == ("feature changeDataFeed is not enabled",)


def test_reader_features_that_no_policy_has_are_refused() -> None:
    known = ("deletionVectors", "columnMapping", "v2Checkpoint", "timestampNtz")
    assert gate_problems(DeltaFeatureGate(), 3, 7, known, known) == ()
    strange = ("deletionVectors", "variantType")
    assert gate_problems(DeltaFeatureGate(), 3, 7, strange, strange) == (
        "reader feature variantType is not allowed",
    )


def test_a_gate_that_is_passed_is_recorded() -> None:
    seen: list[Event] = []
    check_gate(things(), snapshot(), seen.append)
    assert seen == [GateChecked(table="things", version=3, passed=True, snapshot=snapshot())]


def test_a_gate_that_is_not_passed_is_recorded_and_refused() -> None:
    seen: list[Event] = []
    table = replace(things(), gate=DeltaFeatureGate(required_writer_features=("rowTracking",)))
    with pytest.raises(GateError, match="things version 3 fails its gate: feature rowTracking"):
        check_gate(table, snapshot(), seen.append)
    why = ("feature rowTracking is not enabled",)
    assert seen == [GateChecked(table="things", version=3, passed=False, problems=why, snapshot=snapshot())]


def test_the_features_of_a_snapshot_open_its_gate() -> None:
    table = replace(things(), gate=DeltaFeatureGate(required_writer_features=("rowTracking",)))
    check_gate(table, snapshot(3, 7, ["rowTracking"]), lambda event: None)
