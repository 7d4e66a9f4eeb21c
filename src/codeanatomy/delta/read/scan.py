"""Scan a table version with Spark, which reads tables only here, in the change feed and when staging.

A scan is pinned to a version (the newest is resolved to its number first), checks the table's gate, and
returns the contract's columns, whatever the stored schema:

    result = scan(store, "cpg_nodes", pin=3)
    result.rows                 # DataFrame of exactly the declared columns
    result.snapshot.version     # 3
    result.projection           # the expressions of the columns

    scan(store, "cpg_nodes", pin=3, where="node_kind = 'CLASS' AND bstart < 400")

A condition filters the rows, and only data files that may contain such rows by their statistics are opened
(`delta.read.file_index`). Delta prunes the files itself for remote tables, and where many files are left.

Reads without Spark are in `delta.read.light` and `delta.read.duck`, the change feed is in `delta.feed`.

Tests: `tests/spark/test_scan.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError
from msgspec import MsgspecError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from codeanatomy.delta.contract import plan_projection, project, quote_identifier, stored_schema
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.log.entries import TableVersion, has_simple_protocol, open_version
from codeanatomy.delta.log.jvm_log import Pin, SnapshotInfo
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile
from codeanatomy.delta.read.predicate import Predicate
from codeanatomy.delta.read.predicate_text import parse_predicate
from codeanatomy.delta.store import SCHEME, Store
from codeanatomy.errors import PredicateError, StorageFailure, UsageError
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

# Up to this number of data files, the files are listed here instead of by Delta.
FEW_FILES = 256


@dataclass(frozen=True)
class Scan:
    """Rows of one version of one table, with its snapshot and the projection."""

    rows: DataFrame
    snapshot: SnapshotInfo
    projection: tuple[str, ...]


def snapshot(store: Store, name: str, pin: Pin = None) -> SnapshotInfo:
    """Describe a version (protocol, features, properties, schema) after checking the gate."""
    info = store.log(name).snapshot(pin)
    check_gate(store.table(name), info, store.record)
    return info


def scan(
    store: Store,
    name: str,
    pin: Pin = None,
    *,
    where: str | Predicate | None = None,
    files: Sequence[str] | None = None,
    file_column: str | None = None,
) -> Scan:
    """Read a table at a pin.

    `where` is a condition over the table's columns in Spark SQL; `files` restricts the scan to data files of
    that version, spelled as in the log; `file_column` adds a column with the file of each row.
    """
    table = store.table(name)
    if file_column in table.column_names:
        raise UsageError(
            f"file_column {file_column} is already a column of {name}", "choose another file_column"
        )
    predicate = parse_predicate(table, where) if isinstance(where, str) else where
    # With explicit files there is nothing to prune.
    local = None if files is not None else open_without_jvm(store, name, pin)
    info = snapshot(store, name, pin) if local is None else local.info
    index = None if local is None else local.index
    if index is None and predicate is not None and files is None:
        index = _index(store, name, info.version)
    kept = None if index is None else index.files if predicate is None else index.candidates(predicate)
    # No list if all files are read; for a long list Delta takes longer than for pruning them itself.
    pruned = index is not None and kept is not None and len(kept) < index.total and len(kept) <= FEW_FILES
    selected = [file.logged_path for file in kept or ()] if pruned else files
    projection = plan_projection(table, stored_schema(info))
    source = (
        read_parquet_files(store.spark, info.location, stored_schema(info), [file.path for file in kept])
        if local is not None and kept is not None and can_read_parquet(kept)
        else _read_delta(store, name, info.version, selected)
    )
    if file_column is None:
        rows = project(table, source, projection)
    else:
        located = source.select("*", F.col("_metadata.file_path").alias(file_column))
        rows = project(table, located, projection, file_column)
    store.record(
        Scanned(
            table=name,
            version=info.version,
            projection=projection.expressions,
            files=None if selected is None else tuple(selected),
            total_files=None if index is None else index.total,
            candidate_files=len(kept) if kept is not None else None if files is None else len(files),
            pushed_filters=() if predicate is None else predicate.shape,
            filter_columns=() if predicate is None else predicate.columns,
            projected_columns=table.column_names,
        )
    )
    return Scan(rows if predicate is None else _filter(rows, predicate), info, projection.expressions)


def _index(store: Store, name: str, version: int) -> FileIndex | None:
    """Return the index of a version's files; None if the log cannot be read without a JVM."""
    location = store.location(name)
    try:
        return None if SCHEME.match(location) else FileIndex.of(store.table(name), location, version)
    except (OSError, MsgspecError, StorageFailure):
        # Entries before a v2 checkpoint may be gone.
        return None


def _filter(rows: DataFrame, predicate: Predicate) -> DataFrame:
    try:
        return rows.where(predicate.sql())
    except ENGINE_ERRORS as problem:
        raise PredicateError(
            f"Spark rejects the condition on {predicate.table}: {cause_of(problem)}",
            "fix the condition; it must be a boolean expression",
        ) from problem


def open_without_jvm(store: Store, name: str, pin: Pin) -> TableVersion | None:
    """Open a version by reading its log in Python; None if that needs Delta in the JVM."""
    location = store.location(name)
    # Delta resolves timestamps, and rejects invalid pins.
    if SCHEME.match(location) or (pin is not None and type(pin) is not int):
        return None
    try:
        opened = open_version(store.table(name), location, pin)
    except (DeltaError, OSError, ValueError, OverflowError, MsgspecError, StorageFailure):
        # Delta gives the better error message.
        return None
    if opened is None or not has_simple_protocol(opened.info):
        return None
    check_gate(store.table(name), opened.info, store.record)
    return opened


def can_read_parquet(files: Sequence[LoggedFile]) -> bool:
    """Return whether files can be read as plain Parquet: few of them, without deletion vectors.

    Delta runs two Spark jobs per scan to list its files: a quarter of the time of a small build. With many
    files it is better at pruning, and only Delta applies deletion vectors.
    """
    return len(files) <= FEW_FILES and not any(file.vector for file in files)


def read_parquet_files(
    spark: SparkSession, folder: str, schema: StructType, paths: Sequence[str]
) -> DataFrame:
    """Read Parquet files in the folder of a table; partition values come from their paths."""
    if not paths:
        nulls = (
            f"CAST(NULL AS {field.dataType.simpleString()}) AS {quote_identifier(field.name)}"
            for field in schema
        )
        return spark.range(0).selectExpr(*nulls)
    reader = spark.read.schema(schema).option("basePath", folder)
    return reader.parquet(*(f"{folder}/{path}" for path in paths))


def _read_delta(store: Store, name: str, version: int, files: Sequence[str] | None) -> DataFrame:
    if files is not None:
        return store.log(name).read_files(version, files)
    reader = store.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(store.location(name))
