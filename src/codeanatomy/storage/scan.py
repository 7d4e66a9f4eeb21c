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

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.errors import UsageError
from codeanatomy.storage.contract import plan_projection, project, stored_schema
from codeanatomy.storage.deltalog import Pin, SnapshotInfo
from codeanatomy.storage.events import Scanned
from codeanatomy.storage.gate import check_gate
from codeanatomy.storage.store import Store


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
    info = snapshot(store, name, pin)
    projection = plan_projection(table, stored_schema(info))
    source = _source(store, name, info.version, files)
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


def _source(store: Store, name: str, version: int, files: Sequence[str] | None) -> DataFrame:
    if files is not None:
        return store.log(name).restricted(version, files)
    reader = store.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(store.location(name))
