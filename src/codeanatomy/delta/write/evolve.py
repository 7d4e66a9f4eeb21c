"""Update the schema, properties and features of a table to its catalogue entry before rows are written.

    table is missing      created with its first rows: schema with NOT NULL, comments and semantic
                          types, properties and features, all in one commit
    properties differ     set; properties that are no longer in the policy are unset
    columns missing       schema_mode merge: added as nullable columns; otherwise SchemaDrift
    a column's type, or   SchemaDrift (merge ignores extra columns)
    partitions differ
    any of these, and a   replaced in the same commit, unless the policy allows no change
    commit of data files
    leaves no older row

Protocol features are enabled only if the policy lists them, and never disabled. Deletion vectors, which not
every reader supports, are enabled in a new table only: a stored one gets or loses them by
`codeanatomy maintain --readers`.
Tests: `tests/spark/test_drift.py`, `tests/spark/test_features.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import column_metadata, quote_identifier, spark_schema, stored_schema
from codeanatomy.delta.events import TableAltered
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.layout import MANAGED, feature_properties, require_engine_support, table_properties
from codeanatomy.delta.log.protocol import FEATURE_PROPERTIES, FEATURES
from codeanatomy.delta.log.replay import newest_logged
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.log.versions import newest_snapshot_info
from codeanatomy.delta.store import Store
from codeanatomy.errors import FeatureError, SchemaDrift
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import clone_session


def new_table(store: LakeTables, table: Table) -> NewTable:
    """Return the metadata of a table to be created; `evolve` adds the rest after the commit."""
    if table.write.enable_features and isinstance(store, Store):
        require_engine_support(store.spark, table)
    features = table.write.enable_features
    if {"change_data_feed", "column_mapping"} <= set(features):
        # With both features, Delta mistakes the first columns of a table for a schema change and refuses
        # them.
        initial = tuple(name for name in features if name != "column_mapping")
        table = structs.replace(
            table,
            write=structs.replace(table.write, enable_features=initial),
            schema=structs.replace(table.schema, column_mapping_mode=None),
        )
    return NewTable(
        schema_json=spark_schema(table).json(),
        partition_by=table.write.partition_by,
        properties=_properties(table),
        doc=table.doc,
    )


def evolve(
    store: Store,
    table: Table,
    *,
    before: Callable[[], None] | None = None,
) -> SnapshotInfo:
    """Update an existing table to its contract and policy, and return its snapshot.

    `before` is called if something will change.
    """
    location = store.location(table.name)
    current = newest_snapshot_info(location)
    added, changed = _pending_changes(store, table, current)
    if (added or changed) and before is not None:
        before()
    if not any(key in changed for key in FEATURE_PROPERTIES):
        check_gate(table, current, store.record)
    if added:
        # Columns first: Delta refuses statistics on a column that does not exist yet.
        _add_columns(store, table, added)
    if changed:
        _alter_properties(store, table, changed)
    if added or changed:
        before_version, current = current.version, newest_snapshot_info(location)
        store.record(
            TableAltered(
                table=table.name,
                from_version=before_version,
                version=current.version,
                properties=changed,
                added_columns=added,
            )
        )
        check_gate(table, current, store.record)
    return current


class MetadataChange(Struct, frozen=True):
    """What a commit of data files changes in the metadata of its table."""

    # Properties to set or, if empty, to unset.
    properties: dict[str, str] = {}
    # Fields of the metadata that describe the columns; empty if they stay.
    columns: dict[str, Any] = {}


def change_in_place(
    store: LakeTables, table: Table, current: SnapshotInfo, *, leaves_rows: bool
) -> MetadataChange | None:
    """Return how a commit of data files updates the table to its contract and policy.

    A commit that leaves no older row replaces the columns, unless the policy allows no change. None if a
    feature has to be enabled, which needs Spark.
    """
    is_other = current.partition_columns != table.write.partition_by or has_drifted(table, current)
    is_replaced = is_other and not leaves_rows and table.schema.schema_mode is not None
    if is_replaced:
        changed = _changed_properties(table, current)
    else:
        _, changed = _pending_changes(store, table, current)
    if not all(key.startswith(MANAGED) for key in changed):
        return None
    check_gate(table, current, store.record)
    if is_replaced:
        contract, keys = spark_schema(table), list(table.write.partition_by)
        return MetadataChange(changed, {"schemaString": contract.json(), "partitionColumns": keys})
    stored = stored_schema(current)
    merged = _merged(table, stored, spark_schema(table)) if is_other else stored
    return MetadataChange(changed, {} if merged == stored else {"schemaString": merged.json()})


def _merged(table: Table, stored: T.StructType, contract: T.StructType) -> T.StructType:
    """Return the stored columns, with those that the contract has in addition, also in lists and structs."""
    given = {field.name.lower(): field for field in contract.fields}
    fields = [
        T.StructField(
            field.name,
            _merged_type(table, field.name, field.dataType, given[field.name.lower()].dataType),
            field.nullable,
            field.metadata,
        )
        if field.name.lower() in given
        # New rows have no value there.
        else T.StructField(field.name, field.dataType, True, field.metadata)
        for field in stored.fields
    ]
    known = {field.name.lower() for field in stored.fields}
    # Stored rows have no value there.
    new = [
        T.StructField(field.name, field.dataType, True, field.metadata)
        for name, field in given.items()
        if name not in known
    ]
    return T.StructType([*fields, *new])


def _merged_type(table: Table, name: str, stored: T.DataType, contract: T.DataType) -> T.DataType:
    if isinstance(stored, T.StructType) and isinstance(contract, T.StructType):
        return _merged(table, stored, contract)
    if isinstance(stored, T.ArrayType) and isinstance(contract, T.ArrayType):
        element = _merged_type(table, name, stored.elementType, contract.elementType)
        return T.ArrayType(element, stored.containsNull)
    if stored.simpleString() != contract.simpleString():
        raise _fixed_columns(table, (name,), f"{stored.simpleString()} is not {contract.simpleString()}")
    return stored


def _fixed_columns(table: Table, names: Sequence[str], why: str) -> SchemaDrift:
    return SchemaDrift(
        f"the columns {', '.join(names)} of {table.name} cannot be changed in place: {why}",
        "build all repositories of the lake in one run (--full), or build into a new lake",
    )


def _pending_changes(
    store: LakeTables, table: Table, current: SnapshotInfo
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the columns to add, and the properties to set or (empty) to unset, before rows are written.

    Raise SchemaDrift for a difference that the schema policy does not allow.
    """
    if table.write.enable_features and isinstance(store, Store):
        require_engine_support(store.spark, table)
    _refuse_other_partitions(table, current)
    return _new_columns(table, current), _changed_properties(table, current)


def _changed_properties(table: Table, current: SnapshotInfo) -> dict[str, str]:
    """Return the properties to set or (empty) to unset."""
    target = _properties(table, current)
    changed = {key: value for key, value in target.items() if current.properties.get(key) != value}
    stale = [key for key in current.properties if key.startswith(MANAGED) and key not in target]
    return {**changed, **dict.fromkeys(stale, "")}


def has_drifted(table: Table, current: SnapshotInfo) -> bool:
    """Return whether the stored columns differ from the contract in more than order and nullability."""
    stored, contract = stored_schema(current), spark_schema(table)
    return bool(_missing_columns(stored, contract) or _missing_columns(contract, stored))


def _properties(table: Table, current: SnapshotInfo | None = None) -> dict[str, str]:
    """Return the properties that the table should have: managed ones, and features not enabled yet."""
    return {**table_properties(table), **feature_properties(table, current)}


def _refuse_other_partitions(table: Table, current: SnapshotInfo) -> None:
    if current.partition_columns != table.write.partition_by:
        raise SchemaDrift(
            f"{table.name} is partitioned by {list(current.partition_columns)}, "
            f"but its policy requires {list(table.write.partition_by)}",
            "build all repositories of the lake in one run (--full), or restore the policy",
        )


def alter_feature(store: Store, table: Table, feature: FeatureName, commit: Commit) -> int:
    """Enable a feature of a table, and return the version that has it."""
    change = {FEATURES[feature].property: FEATURES[feature].value}
    try:
        _alter_properties(store, table, change, encode_stamp(commit, "features"))
    except ENGINE_ERRORS as problem:
        raise FeatureError(
            f"{feature} cannot be enabled for {table.name}: {cause_of(problem)}",
            "read Delta's documentation of the feature",
        ) from problem
    return newest_logged(store.location(table.name))


def _alter_properties(
    store: Store, table: Table, changed: Mapping[str, str], stamp: str | None = None
) -> None:
    settings = {} if stamp is None else {"spark.databricks.delta.commitInfo.userMetadata": stamp}
    session = clone_session(store.spark, settings)
    address = f"delta.{quote_identifier(store.location(table.name))}"
    pairs = [
        f"{spark_literal(key)} = {spark_literal(value)}" for key, value in sorted(changed.items()) if value
    ]
    if pairs:
        session.sql(f"ALTER TABLE {address} SET TBLPROPERTIES ({', '.join(pairs)})")
    stale = [spark_literal(key) for key, value in sorted(changed.items()) if not value]
    if stale:
        session.sql(f"ALTER TABLE {address} UNSET TBLPROPERTIES ({', '.join(stale)})")


def _new_columns(table: Table, current: SnapshotInfo) -> tuple[str, ...]:
    """Return the columns to add; raise SchemaDrift if the schema policy does not allow the difference."""
    stored, contract = stored_schema(current), spark_schema(table)
    new, extra = _missing_columns(stored, contract), _missing_columns(contract, stored)
    if (new or extra) and table.schema.schema_mode != "merge":
        raise SchemaDrift(
            f"stored {table.name} differs from its contract in {', '.join((*new, *extra))}:"
            " its policy allows no change",
            f"set tables.{table.name}.schema.schema_mode to merge, or build into a new lake",
        )
    return new


def _add_columns(store: Store, table: Table, new: Sequence[str]) -> None:
    columns = [
        F.expr(f"CAST(NULL AS {c.ddl})").alias(c.name, metadata=column_metadata(c)) for c in table.columns
    ]
    no_rows = clone_session(store.spark, {}).range(0).select(*columns)
    writer = no_rows.write.format("delta").mode("append").option("mergeSchema", "true")
    try:
        writer.save(store.location(table.name))
    except AnalysisException as problem:
        raise _fixed_columns(table, new, cause_of(problem)) from problem


def _missing_columns(have: T.StructType, want: T.StructType) -> tuple[str, ...]:
    """Return the columns of `want` that `have` lacks, or has in another type or with fewer fields."""
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
        return not _missing_columns(have, want)
    return have.simpleString() == want.simpleString()
