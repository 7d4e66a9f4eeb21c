"""Give a local table deletion vectors, or take them away, so that other readers open it. No JVM.

    drop_vectors(table, "/lake/graph/cpg_nodes", Commit("run-8"))     # FeatureChange(version=12, ...)
    enable_vectors(table, "/lake/graph/cpg_nodes", Commit("run-8"))   # the protocol, and no data file

To drop the feature, data files with vectors are written again without the deleted rows. The rows of the table
do not change, and neither does its feed. The new version has the oldest protocol that has its other features,
and a checkpoint: a reader that knows no vectors need not read the entries before.

Tests: `tests/unit/maintain/test_readers.py`, `tests/spark/test_copy_on_write.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeanatomy.catalog.readers import VECTORS_NAME
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.entries import DataFile, TableVersion
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.write.rewrite import rewrite_file
from codeanatomy.errors import CommitConflict, FeatureError, StorageFailure

OPERATION = "features"


class FeatureChange(Struct, frozen=True):
    """A version with other features, and the data files that it has rewritten."""

    from_version: int
    version: int
    removed: Sequence[LoggedFile]
    added: Sequence[DataFile]


def has_vectors(table: Table, location: str) -> bool:
    """Return whether the newest version of a table has the feature."""
    current = entries.open_version(table, location)
    return current is not None and VECTORS_NAME in current.info.reader_features


def drop_vectors(table: Table, location: str, commit: Commit) -> FeatureChange:
    """Write a version without deletion vectors, in the table's features and in its files."""
    current = open_writable(table, location)
    removed = [file for file in current.files if file.vector is not None]
    added = [
        copy
        for file in removed
        for copy in rewrite_file(table, location, file, read_vector(location, file.vector))
    ]
    features = [name for name in current.info.writer_features if name != VECTORS_NAME]
    properties = {entries.VECTORS_ENABLED: ""}
    parameters = {"featureName": VECTORS_NAME}
    actions = [
        {"protocol": _plain_protocol(features)},
        *entries.alter_actions(replay_log(location, current.info.version), properties, {}),
        *(entries.remove_action(file, data_change=False) for file in removed),
        *(entries.add_action(file, data_change=False) for file in added),
    ]
    _write(table, current, commit, "DROP FEATURE", parameters, actions, added)
    return FeatureChange(current.info.version, current.info.version + 1, removed, added)


def enable_vectors(table: Table, location: str, commit: Commit) -> FeatureChange:
    """Write a version from which on rows are deleted by vectors."""
    current = open_writable(table, location)
    info = current.info
    features = info.writer_features or entries.IMPLIED[info.min_writer_version]
    properties = {entries.VECTORS_ENABLED: "true"}
    actions = [
        {"protocol": entries.vectors_protocol(features)},
        *entries.alter_actions(replay_log(location, info.version), properties, {}),
    ]
    _write(table, current, commit, "SET TBLPROPERTIES", {"properties": str(properties)}, actions, ())
    return FeatureChange(info.version, info.version + 1, (), ())


def open_writable(table: Table, location: str) -> TableVersion:
    """Open the newest version of a table; refuse one that only Spark writes."""
    current = entries.open_version(table, location)
    if current is None:
        raise StorageFailure(f"there is no table at {location}", "build the lake first")
    if not entries.has_simple_protocol(current.info):
        raise FeatureError(
            f"{table.name} has features that only Spark writes: {', '.join(current.info.writer_features)}",
            "build into a new lake with the setting delta.readers",
        )
    return current


def _plain_protocol(features: Sequence[str]) -> dict[str, Any]:
    """Return the oldest protocol with these writer features and no reader feature."""
    writer = next(number for number in entries.WRITERS if set(features) <= set(entries.IMPLIED[number]))
    return {"minReaderVersion": entries.READER, "minWriterVersion": writer}


def _write(
    table: Table,
    current: TableVersion,
    commit: Commit,
    operation: str,
    parameters: Mapping[str, str],
    actions: Sequence[Mapping[str, Any]],
    added: Sequence[DataFile],
) -> None:
    location, version = current.info.location, current.info.version + 1
    commit_info = entries.commit_info_action(
        encode_stamp(commit, OPERATION), added, {}, removing=True, operation=operation, parameters=parameters
    )
    entry = [commit_info, *actions, entries.transaction_action(commit)]
    if not entries.write_entry(location, version, entry, table.upkeep.checkpoint_interval):
        for file in added:
            Path(location, file.path).unlink(missing_ok=True)
        raise CommitConflict(
            f"another writer has made version {version} of {table.name}",
            "run the command again when it has finished",
        )
    entries.write_checkpoint(location)
