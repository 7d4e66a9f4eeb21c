"""Entries of a Delta log that Python writes: data files that are there become a version of a local table.

    found = opened(table, "/lake/graph/cpg_nodes")           # None: there is no table yet
    actions = [*born(new), *map(added, files), marked(commit)]
    put("/lake/graph/cpg_nodes", 0, actions)                 # _delta_log/00000000000000000000.json

Delta's own classes do the same after loading, compiling and warming up for a second, and for every table
they ask Spark for the state of the log: of a small build that was a third. An entry is a few lines of JSON,
and the protocol says what is in them. It is linked to its name, which fails if somebody else has made that
version: no reader sees half of it, and no commit is lost. So this is for file systems, and for tables whose
protocol asks no more of a writer than this (`has_simple_protocol`); to all others Spark writes.

Rows of a file that stays leave by a deletion vector (`delta.log.deletion_vectors`). Not every reader knows them, so a
table asks for them from its first vector on, and not before.

Tests: `tests/spark/test_adopt.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from msgspec import Struct, json, structs

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.jvm_log import SnapshotInfo
from codeanatomy.delta.log.replay import (
    VECTORS_FEATURE,
    Add,
    LogState,
    entry_path,
    read_actions,
    read_commit_info,
    replay_log,
)
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile, logged_files
from codeanatomy.delta.store_policy import deltalake_options
from codeanatomy.delta.write.row_checks import BrokenRow
from codeanatomy.errors import StorageFailure

# Features of a policy that need nothing of whoever adds and removes files.
SIMPLE_FEATURES = frozenset({"change_data_feed"})
# The protocol of tables that have no other: up to the change data feed.
READER, WRITERS = 1, (2, 3, 4)
# What these writers have to know, by the names that newer protocols give it.
IMPLIED = {
    2: ("appendOnly", "invariants"),
    3: ("appendOnly", "invariants", "checkConstraints"),
    4: ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
}
# The protocol of tables that name their features.
FEATURE_PROTOCOL = (3, 7)
VECTORS_ENABLED = "delta.enableDeletionVectors"
# What a table may say that a writer must heed.
WRITER_PROPERTIES = ("delta.constraints.", "delta.appendOnly")


class DataFile(Struct, frozen=True):
    """A Parquet file in the folder of a table, as Delta's log tells of it."""

    # Below the table's folder.
    path: str
    size_bytes: int
    rows: int
    # Delta's statistics: minima, maxima and counts of nulls, by column.
    stats: str
    # Values of the partition columns, which are in the path and not in the file.
    partition: dict[str, str] = {}
    # Some rows that break a rule of the table.
    broken: tuple[BrokenRow, ...] = ()


class TableVersion(Struct, frozen=True):
    """A version of a table."""

    info: SnapshotInfo
    # Of a table that is not plain none is known: only Delta reads all of its log.
    files: tuple[LoggedFile, ...]

    @property
    def index(self) -> FileIndex:
        """The files, to be asked which of them may hold some rows."""
        return FileIndex(self.info.version, self.files)


def open_version(table: Table, location: str, version: int | None = None) -> TableVersion | None:
    """A version of the table at a local path, else its newest; none if there is no table."""
    if not DeltaTable.is_deltatable(location):
        return None
    info = _info(location, DeltaTable(location, version=version))
    return TableVersion(info, logged_files(table, replay_log(location, info.version)) if has_simple_protocol(info) else ())


def read_snapshot_info(location: str, version: int) -> SnapshotInfo:
    """What the log says of a version of a table at a path or URI."""
    return _info(location, DeltaTable(location, version=version, storage_options=deltalake_options(location)))


def _info(location: str, table: DeltaTable) -> SnapshotInfo:
    protocol, metadata = table.protocol(), table.metadata()
    return SnapshotInfo(
        location=location,
        version=int(table.version()),
        timestamp_ms=commit_time_ms(location, int(table.version())),
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        reader_features=tuple(protocol.reader_features or ()),
        writer_features=tuple(protocol.writer_features or ()),
        properties=dict(metadata.configuration),
        schema_json=table.schema().to_json(),
        partition_columns=tuple(metadata.partition_columns),
    )


def commit_time_ms(location: str, version: int) -> int:
    """When a version of a local table was made, as Delta has it; 0 where its entry is gone."""
    try:
        return entry_path(location, version).stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def advance_snapshot_info(info: SnapshotInfo, version: int) -> SnapshotInfo:
    """What an earlier snapshot of a local table has become by a version, from the entries between them."""
    for number in range(info.version + 1, version + 1):
        for told in read_actions(info.location, number):
            if told.protocol:
                info = structs.replace(
                    info,
                    min_reader_version=told.protocol["minReaderVersion"],
                    min_writer_version=told.protocol["minWriterVersion"],
                    reader_features=tuple(told.protocol.get("readerFeatures") or ()),
                    writer_features=tuple(told.protocol.get("writerFeatures") or ()),
                )
            if told.meta_data:
                info = structs.replace(
                    info,
                    properties=told.meta_data.get("configuration") or {},
                    schema_json=told.meta_data["schemaString"],
                    partition_columns=tuple(told.meta_data.get("partitionColumns") or ()),
                )
    return structs.replace(info, version=version, timestamp_ms=commit_time_ms(info.location, version))


def has_simple_protocol(info: SnapshotInfo) -> bool:
    """Whether adding and removing files, and rows by vectors, is all that the table asks of a writer."""
    legacy = info.min_reader_version == READER and info.min_writer_version in WRITERS
    named = (
        info.min_writer_version == FEATURE_PROTOCOL[1]
        and set(info.reader_features) <= {VECTORS_FEATURE}
        and set(info.writer_features) <= {VECTORS_FEATURE, *IMPLIED[WRITERS[-1]]}
    )
    return (
        (legacy or named)
        and not any(key.startswith(WRITER_PROPERTIES) for key in info.properties)
        # Generated columns, invariants and the like.
        and '"delta.' not in info.schema_json
    )


def last_sequence(location: str, run_id: str) -> int | None:
    """The newest sequence that a run has committed."""
    found = DeltaTable(location).transaction_version(run_id)
    return None if found is None else int(found)


def find_commit(location: str, newest: int, commit: Commit) -> tuple[int, str] | None:
    """The version that a commit has made, and its operation."""
    for version in range(newest, -1, -1):
        try:
            told = read_commit_info(location, version)
        except FileNotFoundError:
            # Cleaned up, with all before it.
            return None
        made = decode_stamp(told.get("userMetadata"))
        if made is not None and (made.run_id, made.sequence) == (commit.run_id, commit.sequence):
            return version, made.operation
    return None


# Actions of an entry.


def commit_info_action(
    user_metadata: str, files: Sequence[DataFile], remove_action: Mapping[str, int], *, removing: bool
) -> dict[str, Any]:
    """What a commit says of itself, with some figures of what it removes; the first action."""
    return {
        "commitInfo": {
            "timestamp": _now(),
            "operation": "WRITE",
            "operationParameters": {"mode": "Overwrite" if removing else "Append"},
            "isolationLevel": "Serializable",
            "isBlindAppend": not removing,
            "operationMetrics": {name: str(value) for name, value in commit_metrics(files, remove_action).items()},
            "userMetadata": user_metadata,
            "engineInfo": "codeanatomy",
            "txnId": str(uuid4()),
        }
    }


def commit_metrics(files: Sequence[DataFile], remove_action: Mapping[str, int]) -> dict[str, int]:
    """What a commit has written and removed, by the names that Delta has for it."""
    return {
        "numFiles": len(files),
        "numOutputRows": sum(file.rows for file in files),
        "numOutputBytes": sum(file.size_bytes for file in files),
        **remove_action,
    }


def create_actions(new: NewTable) -> list[dict[str, Any]]:
    """What makes a table."""
    properties = dict(new.properties)
    reader = int(properties.pop("delta.minReaderVersion", READER))
    writer = int(properties.pop("delta.minWriterVersion", WRITERS[0]))
    return [
        {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}},
        {
            "metaData": {
                "id": str(uuid4()),
                "description": new.doc,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": new.schema_json,
                "partitionColumns": list(new.partition_by),
                "configuration": properties,
                "createdTime": _now(),
            }
        },
    ]


def add_action(file: DataFile) -> dict[str, Any]:
    """A file becomes part of the table."""
    return {
        "add": {
            # As Spark writes the folders of partitions.
            "path": quote(file.path, safe="/="),
            "partitionValues": file.partition,
            "size": file.size_bytes,
            "modificationTime": _now(),
            "dataChange": True,
            "stats": file.stats,
        }
    }


def remove_action(file: LoggedFile) -> dict[str, Any]:
    """A file is no longer part of it."""
    return {
        "remove": {
            "path": file.logged_path,
            "deletionTimestamp": _now(),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": file.partition,
            "size": file.size_bytes,
            **({} if file.vector is None else {"deletionVector": file.vector}),
        }
    }


def shrink_action(add: Add, rows: int, vector: DeletionVector) -> dict[str, Any]:
    """A file loses rows to a vector: it is added anew, beside a `remove_action` of what it was."""
    stats = {**json.decode(add.stats or "{}"), "numRecords": rows, "tightBounds": False}
    told = json.encode(stats).decode()
    return {"add": structs.replace(add, data_change=True, stats=told, deletion_vector=vector)}


def alter_actions(state: LogState, properties: Mapping[str, str], *, vectors: bool) -> list[dict[str, Any]]:
    """What gives a table properties, or takes those away that are empty, and lets its files have vectors."""
    protocol, before = state.protocol, state.metadata.get("configuration", {})
    after = {key: value for key, value in {**before, **properties}.items() if properties.get(key) != ""}
    read_actions: list[dict[str, Any]] = []
    if vectors and not state.has_vectors:
        features = protocol.get("writerFeatures", IMPLIED.get(protocol["minWriterVersion"], ()))
        reader, writer = FEATURE_PROTOCOL
        named = {"readerFeatures": [VECTORS_FEATURE], "writerFeatures": [*features, VECTORS_FEATURE]}
        read_actions.append({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **named}})
    if vectors:
        after[VECTORS_ENABLED] = "true"
    if after != before:
        read_actions.append({"metaData": {**state.metadata, "configuration": after}})
    return read_actions


def transaction_action(commit: Commit) -> dict[str, Any]:
    """The transaction, so that it is made once."""
    return {"txn": {"appId": commit.run_id, "version": commit.sequence, "lastUpdated": _now()}}


def write_entry(location: str, version: int, read_actions: Iterable[Mapping[str, Any]], interval: int = 10) -> bool:
    """Make a version, unless somebody else has made it; every so many there is a checkpoint."""
    place = entry_path(location, version)
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{uuid4()}.tmp")
    try:
        fresh.write_bytes(b"".join(json.encode(action) + b"\n" for action in read_actions))
        os.link(fresh, place)
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    if version and version % interval == 0:
        DeltaTable(location).create_checkpoint()
    return True


def write_checkpoint(location: str) -> int:
    """Write a checkpoint of the newest version of a table, and return that version."""
    try:
        table = DeltaTable(location)
        table.create_checkpoint()
        return int(table.version())
    except (DeltaError, OSError) as problem:
        raise StorageFailure(
            f"no checkpoint of {location}: {problem}", "see that its log is whole and can be written"
        ) from problem


def _now() -> int:
    return int(time.time() * 1000)
