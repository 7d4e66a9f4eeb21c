"""Describe one version of a table: protocol, properties, schema and partitioning.

    info = snapshot(store, "cpg_nodes", 3)          # without a JVM: `open_version(table, location, 3).info`
    info.min_writer_version, info.partition_columns

In a module of its own because events carry it, and they must not import the readers of the log.
Tests: `tests/spark/test_scan.py`.
"""

from __future__ import annotations

from msgspec import Struct


class SnapshotInfo(Struct, frozen=True):
    """One version of a table as described by its log."""

    location: str
    version: int
    # Milliseconds since the epoch, UTC.
    timestamp_ms: int
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...]
    writer_features: tuple[str, ...]
    properties: dict[str, str]
    # Delta's schema as JSON, column metadata included.
    schema_json: str
    partition_columns: tuple[str, ...]
