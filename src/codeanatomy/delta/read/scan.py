"""The scan boundary: the only way rows are read.

A scan is pinned to a version (the newest is resolved to its number first), passes the table's gate,
and comes out in the contract's columns, whatever the stored schema looks like:

    found = scan(store, "cpg_nodes", pin=3)
    found.rows                 # DataFrame of exactly the declared columns
    found.snapshot.version     # 3
    found.projection           # the expressions that made them

    scan(store, "cpg_nodes", pin=3, where="node_kind = 'CLASS' AND bstart < 400")

With a condition, the rows are those that meet it, and only data files are opened that may hold such rows by
what the log says of them (`delta.read.file_index`). Of a table whose log is elsewhere Delta knows which, and
where many files are left.

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

# Data files that are read without asking Delta which of them are needed.
FEW_FILES = 256


@dataclass(frozen=True)
class Scan:
    """Rows of one version of one table, and how they were made."""

    rows: DataFrame
    snapshot: SnapshotInfo
    projection: tuple[str, ...]


def snapshot(store: Store, name: str, pin: Pin = None) -> SnapshotInfo:
    """Protocol, features, properties and schema of a version; checks the gate."""
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

    `where` is a condition over the table's columns, in Spark's SQL; `files` restricts the scan to data files
    of that version, named as the log names them; `file_column` adds a column with the file of each row.
    """
    table = store.table(name)
    if file_column in table.column_names:
        raise UsageError(f"{name} has a column {file_column} of its own", "choose another file_column")
    asked = parse_predicate(table, where) if isinstance(where, str) else where
    # Whoever names files has chosen already.
    plain = None if files is not None else open_without_jvm(store, name, pin)
    info = snapshot(store, name, pin) if plain is None else plain.info
    index = None if plain is None else plain.index
    if index is None and asked is not None and files is None:
        index = _index(store, name, info.version)
    kept = None if index is None else index.files if asked is None else index.candidates(asked)
    # All files need no names, and many would take Delta longer than to choose them itself.
    pruned = index is not None and kept is not None and len(kept) < index.total and len(kept) <= FEW_FILES
    chosen = [file.logged_path for file in kept or ()] if pruned else files
    projection = plan_projection(table, stored_schema(info))
    source = (
        read_parquet_files(store.spark, info.location, stored_schema(info), [file.path for file in kept])
        if plain is not None and kept is not None and can_read_parquet(kept)
        else _source(store, name, info.version, chosen)
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
            files=None if chosen is None else tuple(chosen),
            total_files=None if index is None else index.total,
            candidate_files=len(kept) if kept is not None else None if files is None else len(files),
            pushed_filters=() if asked is None else asked.shape,
            filter_columns=() if asked is None else asked.columns,
            projected_columns=table.column_names,
        )
    )
    return Scan(rows if asked is None else _meeting(rows, asked), info, projection.expressions)


def _index(store: Store, name: str, version: int) -> FileIndex | None:
    """The files of a version with what the log says of them; none where Python cannot read the log."""
    location = store.location(name)
    try:
        return None if SCHEME.match(location) else FileIndex.of(store.table(name), location, version)
    except (OSError, MsgspecError, StorageFailure):
        # Entries before a checkpoint of the second kind are gone.
        return None


def _meeting(rows: DataFrame, asked: Predicate) -> DataFrame:
    try:
        return rows.where(asked.sql())
    except ENGINE_ERRORS as problem:
        raise PredicateError(
            f"Spark does not take the condition on {asked.table}: {cause_of(problem)}",
            "mend what it names; the whole has to be true or false",
        ) from problem


def open_without_jvm(store: Store, name: str, pin: Pin) -> TableVersion | None:
    """A version of which the log can be read without a JVM; none where Delta has to be asked."""
    location = store.location(name)
    # Times, and what is no version at all, are Delta's to resolve.
    if SCHEME.match(location) or (pin is not None and type(pin) is not int):
        return None
    try:
        found = open_version(store.table(name), location, pin)
    except (DeltaError, OSError, ValueError, OverflowError, MsgspecError, StorageFailure):
        # Delta tells better what is wrong.
        return None
    if found is None or not has_simple_protocol(found.info):
        return None
    check_gate(store.table(name), found.info, store.record)
    return found


def can_read_parquet(files: Sequence[LoggedFile]) -> bool:
    """Whether what is to be read is a few files of Parquet and no more.

    Delta asks Spark for the files of every scan, twice: in a small build that was a fourth of the time. With
    many files it knows which of them to skip, and it knows which rows have left a file.
    """
    return len(files) <= FEW_FILES and not any(file.vector for file in files)


def read_parquet_files(spark: SparkSession, folder: str, schema: StructType, paths: Sequence[str]) -> DataFrame:
    """The rows of Parquet files below the folder of a table; the values of partitions are in their paths."""
    if not paths:
        nothing = (
            f"CAST(NULL AS {field.dataType.simpleString()}) AS {quote_identifier(field.name)}" for field in schema
        )
        return spark.range(0).selectExpr(*nothing)
    reader = spark.read.schema(schema).option("basePath", folder)
    return reader.parquet(*(f"{folder}/{path}" for path in paths))


def _source(store: Store, name: str, version: int, files: Sequence[str] | None) -> DataFrame:
    if files is not None:
        return store.log(name).read_files(version, files)
    reader = store.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(store.location(name))
