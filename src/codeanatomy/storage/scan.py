"""The scan boundary: the only way rows are read.

A scan is pinned to a version (the newest is resolved to its number first), passes the table's gate,
and comes out in the contract's columns, whatever the stored schema looks like:

    found = scan(store, "cpg_nodes", pin=3)
    found.rows                 # DataFrame of exactly the declared columns
    found.snapshot.version     # 3
    found.projection           # the expressions that made them

Tests: `tests/test_scan.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from codeanatomy.errors import UsageError
from codeanatomy.storage.contract import plan_projection, project, quoted, stored_schema
from codeanatomy.storage.deltalog import Pin, SnapshotInfo
from codeanatomy.storage.entries import Opened, is_plain, opened
from codeanatomy.storage.events import Scanned
from codeanatomy.storage.gate import check_gate
from codeanatomy.storage.store import SCHEME, Store

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
    files: Sequence[str] | None = None,
    file_column: str | None = None,
) -> Scan:
    """Read a table at a pin.

    `files` restricts the scan to data files of that version, named as the log names them;
    `file_column` adds a column with the file each row came from.
    """
    table = store.table(name)
    if file_column in table.column_names:
        raise UsageError(f"{name} has a column {file_column} of its own", "choose another file_column")
    plain = None if files is not None else _plain(store, name, pin)
    info = snapshot(store, name, pin) if plain is None else plain.info
    projection = plan_projection(table, stored_schema(info))
    source = (
        _source(store, name, info.version, files)
        if plain is None or not _is_parquet(plain)
        else _rows_of(store, plain)
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
            files=None if files is None else tuple(files),
        )
    )
    return Scan(rows, info, projection.expressions)


def _plain(store: Store, name: str, pin: Pin) -> Opened | None:
    """A version of which the log can be read without a JVM; none where Delta has to be asked."""
    location = store.location(name)
    # Times, and what is no version at all, are Delta's to resolve.
    if SCHEME.match(location) or (pin is not None and type(pin) is not int):
        return None
    try:
        found = opened(location, pin)
    except (DeltaError, OSError, ValueError, OverflowError):
        # Delta tells better what is wrong.
        return None
    if found is None or not is_plain(found.info):
        return None
    check_gate(store.table(name), found.info, store.record)
    return found


def _is_parquet(found: Opened) -> bool:
    """Whether a version is a few files of Parquet and no more.

    Delta asks Spark for the files of every scan, twice: in a small build that was a fourth of the time. With
    many files it knows which of them to skip, and it knows which rows have left a file.
    """
    return len(found.files) <= FEW_FILES and not any(file.vector for file in found.files)


def _rows_of(store: Store, plain: Opened) -> DataFrame:
    paths = [unquote(file.path) for file in plain.files]
    return parquet_rows(store.spark, plain.info.location, stored_schema(plain.info), paths)


def parquet_rows(spark: SparkSession, folder: str, schema: StructType, paths: Sequence[str]) -> DataFrame:
    """The rows of Parquet files below the folder of a table; the values of partitions are in their paths."""
    if not paths:
        nothing = (
            f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in schema
        )
        return spark.range(0).selectExpr(*nothing)
    reader = spark.read.schema(schema).option("basePath", folder)
    return reader.parquet(*(f"{folder}/{path}" for path in paths))


def _source(store: Store, name: str, version: int, files: Sequence[str] | None) -> DataFrame:
    if files is not None:
        return store.log(name).restricted(version, files)
    reader = store.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(store.location(name))
