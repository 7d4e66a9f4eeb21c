"""Give a table deletion vectors, or take them away, so that other readers open it. No JVM.

    drop_vectors(tables, table, Commit("run-8"))     # FeatureChange(version=12, ...)
    enable_vectors(tables, table, Commit("run-8"))   # the protocol, and no data file

To drop the feature, data files with vectors are written again without the deleted rows. The rows of the table
do not change, and neither does its feed. The new version has the oldest protocol that has its other features,
and a checkpoint: a reader that knows no vectors need not read the entries before.

Tests: `tests/unit/maintain/test_readers.py`, `tests/spark/test_copy_on_write.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, json

from codeanatomy.catalog.readers import VECTORS_NAME
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.protocol import IMPLIED, READER, VECTORS_ENABLED, WRITERS
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.log.versions import TableVersion, open_version
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.write.commit import PendingCommit, run_commit
from codeanatomy.delta.write.log_writer import LogWriter, require_simple
from codeanatomy.delta.write.rewrite import rewrite_file
from codeanatomy.errors import StorageFailure

OPERATION = "features"
NEW_LAKE = "build into a new lake with the setting delta.readers"


class FeatureChange(Struct, frozen=True):
    """A version with other features, and the data files that it has rewritten."""

    from_version: int
    version: int
    removed: Sequence[LoggedFile]
    added: Sequence[DataFile]


def has_vectors(table: Table, location: str) -> bool:
    """Return whether the newest version of a table has the feature."""
    current = open_version(table, location)
    return current is not None and VECTORS_NAME in current.info.reader_features


def drop_vectors(tables: LakeTables, table: Table, commit: Commit) -> FeatureChange:
    """Write a version without deletion vectors, in the table's features and in its files."""
    return _change(tables, table, commit, VectorsDropped(table))


def enable_vectors(tables: LakeTables, table: Table, commit: Commit) -> FeatureChange:
    """Write a version from which on rows are deleted by vectors."""
    return _change(tables, table, commit, VectorsEnabled(table))


def _change(tables: LakeTables, table: Table, commit: Commit, writer: FeatureWriter) -> FeatureChange:
    done = run_commit(PendingCommit(tables, table, OPERATION, commit, writer))
    entries.write_checkpoint(tables.location(table.name))
    return FeatureChange(done.version - 1, done.version, writer.removed, writer.added)


class FeatureWriter(LogWriter):
    """Change the protocol of a table, and the property that goes with it."""

    value: ClassVar[str]

    def __init__(self, table: Table) -> None:
        self.table = table
        self.removed: list[LoggedFile] = []
        self.added: list[DataFile] = []

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        """Write the version with the other protocol."""
        if current is None:
            raise StorageFailure(f"there is no table at {change.location}", "build the lake first")
        require_simple(self.table, current, NEW_LAKE)
        self.rewrite(current)
        actions = [
            {"protocol": self.protocol(current.info)},
            *entries.alter_actions(current.state, {VECTORS_ENABLED: self.value}, {}),
            *(entries.remove_action(file, data_change=False) for file in self.removed),
            *(entries.add_action(file, data_change=False) for file in self.added),
        ]
        removal = {
            "numRemovedFiles": len(self.removed),
            "numAddedFiles": len(self.added),
            "numAddedBytes": sum(file.size_bytes for file in self.added),
            "numCopiedRows": sum(file.rows for file in self.added),
        }
        unused = [file.path for file in self.added]
        return self.write_entry(change, current, actions, removal=removal, unused=unused)

    def rewrite(self, current: TableVersion) -> None:
        """Write data files again; none by default."""

    def protocol(self, info: SnapshotInfo) -> dict[str, Any]:
        """Return the protocol of the new version."""
        raise NotImplementedError


class VectorsDropped(FeatureWriter):
    """Write data files with vectors again, without the deleted rows."""

    delta_operation = "DROP FEATURE"
    parameters: Mapping[str, str] | None = {"featureName": VECTORS_NAME}
    value = ""

    def rewrite(self, current: TableVersion) -> None:
        """Write the rows that are left."""
        location = current.info.location
        self.removed = [file for file in current.files if file.vector is not None]
        self.added = [
            copy
            for file in self.removed
            for copy in rewrite_file(self.table, location, file, read_vector(location, file.vector))
        ]

    def protocol(self, info: SnapshotInfo) -> dict[str, Any]:
        """Return the oldest protocol that has the other features."""
        return _plain_protocol([name for name in info.writer_features if name != VECTORS_NAME])


class VectorsEnabled(FeatureWriter):
    """Change the protocol only."""

    delta_operation = "SET TBLPROPERTIES"
    parameters: Mapping[str, str] | None = {"properties": json.encode({VECTORS_ENABLED: "true"}).decode()}
    value = "true"

    def protocol(self, info: SnapshotInfo) -> dict[str, Any]:
        """Return the protocol with the feature."""
        return entries.vectors_protocol(info.writer_features or IMPLIED[info.min_writer_version])


def open_writable(table: Table, location: str) -> TableVersion:
    """Open the newest version of a table; refuse one that only Spark writes."""
    current = open_version(table, location)
    if current is None:
        raise StorageFailure(f"there is no table at {location}", "build the lake first")
    require_simple(table, current, NEW_LAKE)
    return current


def _plain_protocol(features: Sequence[str]) -> dict[str, Any]:
    """Return the oldest protocol with these writer features and no reader feature."""
    writer = next(number for number in WRITERS if set(features) <= set(IMPLIED[number]))
    return {"minReaderVersion": READER, "minWriterVersion": writer}
