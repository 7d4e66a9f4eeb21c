"""What the log says of a version of a table as a whole, whoever has read it.

    info = snapshot(store, "cpg_nodes", 3)          # or, without a JVM, `opened(location, 3).info`
    info.min_writer_version, info.partition_columns

Events carry it, so it is apart from what reads it. Tests: `tests/spark/test_scan.py`.
"""

from __future__ import annotations

from msgspec import Struct


class SnapshotInfo(Struct, frozen=True):
    """One version of a table: what a reader must know before it reads."""

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
