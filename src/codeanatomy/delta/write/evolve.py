"""Tables brought to what the catalogue says before rows go in: born, altered, or refused.

    not there             born with the first rows: schema with NOT NULL, comments and semantic
                          types, properties and features, all in one commit
    properties differ     set, and what the policy no longer says is unset
    columns missing       schema_mode merge: added as nullable columns; otherwise SchemaDrift
    a column's type,      overwrite with schema_mode overwrite: replaced with the data;
    extra columns,        otherwise SchemaDrift (extra columns alone are left alone under merge)
    or partitions differ

Protocol features are switched on only where the policy asks for them, and never off.
Tests: `tests/spark/test_drift.py`, `tests/spark/test_features.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import structs
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import column_metadata, quote_identifier, spark_schema, stored_schema
from codeanatomy.delta.events import StatsDecided, TableAltered
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.layout import (
    FEATURE_PROPERTIES,
    FEATURES,
    MANAGED,
    feature_properties,
    recorded_lineage,
    require_engine_support,
    resolve_stats_columns,
    stats_reasons,
    table_properties,
)
from codeanatomy.delta.log.jvm_log import SnapshotInfo
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.store import LakeTables, Store
from codeanatomy.errors import FeatureError, SchemaDrift
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, sql_text
from codeanatomy.spark.session import isolated


def new_table(store: LakeTables, table: Table, lineage: Sequence[str] | None) -> NewTable:
    """What the table is to be born with; `evolve` adds the rest after the commit."""
    if table.write.enable_features and isinstance(store, Store):
        require_engine_support(store.spark, table)
    features = table.write.enable_features
    if {"change_data_feed", "column_mapping"} <= set(features):
        # Delta takes the first columns of a table with both for a change of columns, and refuses it.
        later = tuple(name for name in features if name != "column_mapping")
        table = structs.replace(
            table,
            write=structs.replace(table.write, enable_features=later),
            schema=structs.replace(table.schema, column_mapping_mode=None),
        )
    kept = _kept(table, {}, lineage)
    _tell_stats(store, table, kept)
    return NewTable(
        schema_json=spark_schema(table).json(),
        partition_by=table.write.partition_by,
        properties=_properties(table, kept),
        doc=table.doc,
    )


def evolve(
    store: Store,
    table: Table,
    lineage: Sequence[str] | None = None,
    *,
    replacing: bool = False,
    before: Callable[[], None] | None = None,
) -> SnapshotInfo:
    """Make a table that is there fit its contract, and return its snapshot.

    `lineage` names columns that consumers filter and join by; none means those that the run has found
    (`Table.lineage`), else those of the last commit that named any. `replacing` says that the commit to come
    overwrites everything: where it brings its own schema, the table is left alone until then. `before` is
    called where something will change.
    """
    log = store.log(table.name)
    found = log.snapshot()
    added, changed = _pending(store, table, found, lineage, replacing=replacing)
    if (added or changed) and before is not None:
        before()
    if not any(key in changed for key in FEATURE_PROPERTIES):
        check_gate(table, found, store.record)
    if added:
        # Columns first: Delta refuses statistics on a column that is not there yet.
        _add_columns(store, table, added)
    if changed:
        _alter_properties(store, table, changed)
    _tell_stats(store, table, _kept(table, found.properties, lineage))
    if added or changed:
        before_version, found = found.version, log.snapshot()
        store.record(
            TableAltered(
                table=table.name,
                from_version=before_version,
                version=found.version,
                properties=changed,
                added_columns=added,
            )
        )
        check_gate(table, found, store.record)
    return found


def missing_properties(store: LakeTables, table: Table, found: SnapshotInfo) -> dict[str, str] | None:
    """What `evolve` would set, or (empty) unset, for somebody who can do that with a commit of rows.

    None where it would do more: new columns or features. Refuses what it refuses, and tells what it tells.
    """
    added, changed = _pending(store, table, found, None, replacing=False)
    if added or not all(key.startswith(MANAGED) for key in changed):
        return None
    check_gate(table, found, store.record)
    _tell_stats(store, table, _kept(table, found.properties, None))
    return changed


def _pending(
    store: LakeTables,
    table: Table,
    found: SnapshotInfo,
    lineage: Sequence[str] | None,
    *,
    replacing: bool,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """What has to change before rows go in: columns to add, and properties to set or (empty) to unset.

    Refuses what the schema policy does not allow.
    """
    if table.write.enable_features and isinstance(store, Store):
        require_engine_support(store.spark, table)
    if replaces_schema(table, found, replacing=replacing):
        return (), {}
    _refuse_other_partitions(table, found)
    shall = _properties(table, _kept(table, found.properties, lineage), found)
    wanted = {key: value for key, value in shall.items() if found.properties.get(key) != value}
    stale = [key for key in found.properties if key.startswith(MANAGED) and key not in shall]
    return _new_columns(table, found), {**wanted, **dict.fromkeys(stale, "")}


def _kept(table: Table, properties: Mapping[str, str], lineage: Sequence[str] | None) -> Sequence[str]:
    """The lineage columns that count: those given, those that the run has found, those of an earlier commit.

    Of what the run has found, those that get statistics: what else somebody has asked for changes no table.
    """
    if lineage is not None:
        return lineage
    if table.lineage is None:
        return recorded_lineage(properties)
    chosen = resolve_stats_columns(table)
    return tuple(sorted({each.name for each in table.lineage} & set(chosen)))


def replaces_schema(table: Table, found: SnapshotInfo, *, replacing: bool) -> bool:
    """Whether a commit that overwrites everything also replaces the stored schema."""
    moved = found.partition_columns != table.write.partition_by
    return replacing and table.schema.schema_mode == "overwrite" and (moved or has_drifted(table, found))


def has_drifted(table: Table, found: SnapshotInfo) -> bool:
    """Whether the stored columns differ from the contract in more than order and nullability."""
    stored, wanted = stored_schema(found), spark_schema(table)
    return bool(_lacking(stored, wanted) or _lacking(wanted, stored))


def _properties(table: Table, lineage: Sequence[str], found: SnapshotInfo | None = None) -> dict[str, str]:
    """The properties the table shall have: managed ones, and features that are still missing."""
    stats = resolve_stats_columns(table, lineage)
    return {**table_properties(table, stats, lineage), **feature_properties(table, found)}


def _tell_stats(store: LakeTables, table: Table, lineage: Sequence[str]) -> None:
    reasons, dropped = stats_reasons(table, lineage)
    store.record(
        StatsDecided(
            table=table.name,
            stats_policy=table.write.stats_policy,
            stats_columns=resolve_stats_columns(table, lineage),
            lineage_columns=tuple(lineage),
            reasons=reasons,
            dropped_columns=dropped,
        )
    )


def _refuse_other_partitions(table: Table, found: SnapshotInfo) -> None:
    if found.partition_columns != table.write.partition_by:
        raise SchemaDrift(
            f"{table.name} is partitioned by {list(found.partition_columns)}, "
            f"its policy says {list(table.write.partition_by)}",
            f"overwrite it with tables.{table.name}.schema.schema_mode=overwrite, or restore the policy",
        )


def alter_feature(store: Store, table: Table, feature: FeatureName, commit: Commit) -> int:
    """Switch on a feature of a table, and return the version that has it."""
    wanted = FEATURES[feature]
    try:
        _alter_properties(store, table, {wanted.property: wanted.value}, encode_stamp(commit, "features"))
    except ENGINE_ERRORS as problem:
        raise FeatureError(
            f"{table.name} cannot have {feature}: {cause_of(problem)}",
            "see Delta's documentation of the feature",
        ) from problem
    return store.log(table.name).snapshot().version


def _alter_properties(
    store: Store, table: Table, changed: Mapping[str, str], said: str | None = None
) -> None:
    settings = {} if said is None else {"spark.databricks.delta.commitInfo.userMetadata": said}
    session = isolated(store.spark, settings)
    address = f"delta.{quote_identifier(store.location(table.name))}"
    pairs = [f"{sql_text(key)} = {sql_text(value)}" for key, value in sorted(changed.items()) if value]
    if pairs:
        session.sql(f"ALTER TABLE {address} SET TBLPROPERTIES ({', '.join(pairs)})")
    stale = [sql_text(key) for key, value in sorted(changed.items()) if not value]
    if stale:
        session.sql(f"ALTER TABLE {address} UNSET TBLPROPERTIES ({', '.join(stale)})")


def _new_columns(table: Table, found: SnapshotInfo) -> tuple[str, ...]:
    """The columns to add; a difference that the schema policy does not allow is an error."""
    stored, contract = stored_schema(found), spark_schema(table)
    new, extra = _lacking(stored, contract), _lacking(contract, stored)
    mode = table.schema.schema_mode
    if (new or extra) and mode != "merge":
        allowed = "only an overwrite may change it" if mode == "overwrite" else "its policy allows no change"
        raise SchemaDrift(
            f"stored {table.name} differs from its contract in {', '.join((*new, *extra))}: {allowed}",
            f"set tables.{table.name}.schema.schema_mode, or rebuild the table",
        )
    return new


def _add_columns(store: Store, table: Table, new: Sequence[str]) -> None:
    columns = [F.expr(f"CAST(NULL AS {c.ddl})").alias(c.name, metadata=column_metadata(c)) for c in table.columns]
    nothing = isolated(store.spark, {}).range(0).select(*columns)
    writer = nothing.write.format("delta").mode("append").option("mergeSchema", "true")
    try:
        writer.save(store.location(table.name))
    except AnalysisException as problem:
        raise SchemaDrift(
            f"the columns {', '.join(new)} of {table.name} cannot be changed in place: {cause_of(problem)}",
            f"rewrite the table with tables.{table.name}.schema.schema_mode=overwrite",
        ) from problem


def _lacking(have: T.StructType, want: T.StructType) -> tuple[str, ...]:
    """The columns of `want` that `have` does not hold, or not all of, or in another type."""
    types = {field.name.lower(): field.dataType for field in have.fields}
    return tuple(
        field.name
        for field in want.fields
        if field.name.lower() not in types or not _holds(types[field.name.lower()], field.dataType)
    )


def _holds(have: T.DataType, want: T.DataType) -> bool:
    if isinstance(have, T.ArrayType) and isinstance(want, T.ArrayType):
        return _holds(have.elementType, want.elementType)
    if isinstance(have, T.StructType) and isinstance(want, T.StructType):
        return not _lacking(have, want)
    return have.simpleString() == want.simpleString()
