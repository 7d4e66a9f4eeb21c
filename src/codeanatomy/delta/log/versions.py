"""Open versions of a table by its log, in Python: description, data files and state.

    opened = open_version(table, "/lake/graph/cpg_nodes")   # None: there is no table yet
    opened.info.version, opened.files[0].partition, opened.state.transactions

`delta.read.open_table` is for readers: it resolves pins, checks the gate and explains what is missing.
Tests: `tests/unit/delta/test_open_table.py`.
"""

from __future__ import annotations

import time

from msgspec import Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.folder import StoredFile
from codeanatomy.delta.log.replay import (
    LogListing,
    LogState,
    entry_path,
    list_log,
    newest_logged,
    replay_log,
)
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile, logged_files
from codeanatomy.delta.store_policy import is_local


class TableVersion(Struct, frozen=True):
    """A version of a table: its description, its data files and its log."""

    info: SnapshotInfo
    files: tuple[LoggedFile, ...]
    state: LogState

    @property
    def index(self) -> FileIndex:
        """Return the index of the files, for pruning."""
        return FileIndex(self.info.version, self.files)


def open_version(table: Table, location: str, version: int | None = None) -> TableVersion | None:
    """Open a version (default: the newest) of the table at a path or URI; None if there is no table.

    Raise FileNotFoundError if the log has no such version.
    """
    listing = list_log(location)
    if listing.newest < 0:
        return None
    return describe_version(table, location, listing.newest if version is None else version, listing)


def describe_version(table: Table, location: str, version: int, listing: LogListing) -> TableVersion:
    """Open a version of a table whose log is listed."""
    state = replay_log(location, version, listing)
    return TableVersion(_info(location, version, state, listing), logged_files(table, state), state)


def describe_new(table: Table, location: str) -> TableVersion:
    """Open the first version of a table that this process has just created.

    A list of an object store would take a request; there the time of the commit is that of this machine.
    """
    if is_local(location):
        return describe_version(table, location, 0, list_log(location, 0))
    entry = StoredFile(entry_path(0), 0, int(time.time() * 1000))
    return describe_version(table, location, 0, LogListing({0: entry}, {}))


def read_snapshot_info(location: str, version: int) -> SnapshotInfo:
    """Describe a version of the table at a path or URI."""
    listing = list_log(location, version)
    return _info(location, version, replay_log(location, version, listing), listing)


def newest_snapshot_info(location: str) -> SnapshotInfo:
    """Describe the newest version of the table at a path or URI."""
    return read_snapshot_info(location, newest_logged(location))


def _info(location: str, version: int, state: LogState, listing: LogListing) -> SnapshotInfo:
    protocol, metadata = state.protocol, state.metadata
    if "minReaderVersion" not in protocol or "schemaString" not in metadata:
        raise FileNotFoundError(f"the log of {location} has no protocol or no schema up to version {version}")
    entry = listing.entries.get(version)
    return SnapshotInfo(
        location=location,
        version=version,
        timestamp_ms=0 if entry is None else entry.modified_ms,
        min_reader_version=protocol["minReaderVersion"],
        min_writer_version=protocol["minWriterVersion"],
        reader_features=tuple(sorted(protocol.get("readerFeatures") or ())),
        writer_features=tuple(sorted(protocol.get("writerFeatures") or ())),
        properties=metadata.get("configuration") or {},
        schema_json=metadata["schemaString"],
        partition_columns=tuple(metadata.get("partitionColumns") or ()),
    )
