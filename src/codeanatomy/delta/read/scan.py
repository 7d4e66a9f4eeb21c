"""Scan a table version with Spark, which reads tables only here and in the change feed.

A scan is pinned to a version (the newest is resolved to its number first), checks the table's gate, and
returns the contract's columns, whatever the stored schema:

    result = scan(store, "cpg_nodes", pin=3)
    result.rows                 # DataFrame of exactly the declared columns
    result.snapshot.version     # 3
    result.projection           # the expressions of the columns

    scan(store, "cpg_nodes", pin=3, where="node_kind = 'CLASS' AND bstart < 400")

A condition filters the rows, and only data files that may contain such rows by their statistics are opened
(`delta.read.file_index`). Where many files are left, Delta prunes them itself.

Reads without Spark are in `delta.read.light` and `delta.read.duck`, the change feed is in `delta.feed`.

Tests: `tests/spark/test_scan.py`, `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from codeanatomy.delta.contract import plan_projection, project, quote_identifier, stored_schema
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.log.jvm_log import read_files
from codeanatomy.delta.log.protocol import has_simple_protocol
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.open_table import Pin, open_table
from codeanatomy.delta.read.predicate import Predicate
from codeanatomy.delta.read.predicate_text import parse_predicate
from codeanatomy.delta.store import Store
from codeanatomy.errors import PredicateError, UsageError
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

# Up to this number of data files, the files are listed here instead of by Delta.
FEW_FILES = 256


@dataclass(frozen=True)
class Scan:
    """Rows of one version of one table, with its snapshot and the projection."""

    rows: DataFrame
    snapshot: SnapshotInfo
    projection: tuple[str, ...]


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
    opened = open_table(store, name, pin)
    info, index = opened.info, opened.index
    kept = index.files if predicate is None else index.candidates(predicate)
    # No list if all files are read; for a long list Delta takes longer than for pruning them itself. And the
    # public interface of Delta takes no list.
    is_few = len(kept) < index.total and len(kept) <= FEW_FILES
    is_pruned = files is None and is_few and store.uses_internals
    selected = [file.logged_path for file in kept] if is_pruned else files
    projection = plan_projection(table, stored_schema(info))
    source = (
        read_parquet_files(store.spark, info.location, stored_schema(info), [file.path for file in kept])
        if files is None and can_read_parquet(info, kept)
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
            total_files=index.total,
            candidate_files=len(kept) if files is None else len(files),
            pushed_filters=() if predicate is None else predicate.shape,
            filter_columns=() if predicate is None else predicate.columns,
            projected_columns=table.column_names,
        )
    )
    return Scan(rows if predicate is None else _filter(rows, predicate), info, projection.expressions)


def _filter(rows: DataFrame, predicate: Predicate) -> DataFrame:
    try:
        return rows.where(predicate.sql())
    except ENGINE_ERRORS as problem:
        raise PredicateError(
            f"Spark rejects the condition on {predicate.table}: {cause_of(problem)}",
            "fix the condition; it must be a boolean expression",
        ) from problem


def can_read_parquet(info: SnapshotInfo, files: Sequence[LoggedFile]) -> bool:
    """Return whether files can be read as plain Parquet: few of them, without deletion vectors and the like.

    Delta runs two Spark jobs per scan to list its files: a quarter of the time of a small build. With many
    files it is better at pruning, and only Delta applies deletion vectors.
    """
    return has_simple_protocol(info) and len(files) <= FEW_FILES and not any(file.vector for file in files)


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
        return read_files(store.spark, store.location(name), version, files)
    reader = store.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(store.location(name))


def stored_columns(store: Store, name: str, version: int) -> list[str]:
    """Return the columns of a version as Delta opens it in the session; no row is read."""
    return _read_delta(store, name, version, None).columns
