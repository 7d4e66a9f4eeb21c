"""Write log entries of a table in Python: existing data files become a new version of it.

    actions = [*create_actions(new), *map(add_action, files), transaction_action(commit)]
    write_entry("/lake/graph/cpg_nodes", 0, actions)         # _delta_log/00000000000000000000.json

Delta's own classes do the same after loading, compiling and warming up for a second, and for every table they
read the state of the log with Spark: a third of the time of a small build. An entry is a few lines of JSON,
specified by the protocol. It is created under its name only if no other writer has made that version
(`delta.log.folder`): no reader sees a partial entry, and no commit is lost. This works only for tables whose
protocol requires no more of a writer (`has_simple_protocol`); all others are written by Spark.

Deleted rows of a file that stays are marked by a deletion vector (`delta.log.deletion_vectors`) if the table
has that feature, which not every reader supports. A table is created with its features, and no commit of
rows changes them.

Tests: `tests/spark/test_file_commits.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from msgspec import Struct, json, structs

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.protocol import (
    FEATURE_PROTOCOL,
    FEED_ENABLED,
    FEED_FEATURE,
    IMPLIED,
    READER,
    VECTORS_ENABLED,
    WRITERS,
)
from codeanatomy.delta.log.replay import (
    LOG,
    VECTORS_FEATURE,
    Add,
    LogState,
    entry_path,
)
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.store_policy import is_local, store_options
from codeanatomy.delta.write.row_checks import BrokenRow
from codeanatomy.errors import StorageFailure


class DataFile(Struct, frozen=True):
    """A Parquet file in the folder of a table, with what an add action needs."""

    # Relative to the table's folder.
    path: str
    size_bytes: int
    rows: int
    # Delta's statistics as JSON: minima, maxima and null counts by column.
    stats: str
    # Values of the partition columns, which are in the path and not in the file.
    partition: dict[str, str] = {}
    # Samples of rows that violate a rule of the table.
    broken: tuple[BrokenRow, ...] = ()


# Actions of an entry.


def commit_info_action(
    user_metadata: str,
    files: Sequence[DataFile],
    removal_metrics: Mapping[str, int],
    *,
    removing: bool,
    operation: str = "WRITE",
    parameters: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build the commitInfo, the first action of an entry, with the metrics of the commit."""
    metrics = commit_metrics(files, removal_metrics)
    return {
        "commitInfo": {
            "timestamp": _now(),
            "operation": operation,
            "operationParameters": parameters or {"mode": "Overwrite" if removing else "Append"},
            "isolationLevel": "Serializable",
            "isBlindAppend": not removing,
            "operationMetrics": {name: str(value) for name, value in metrics.items()},
            "userMetadata": user_metadata,
            "engineInfo": "codeanatomy",
            "txnId": str(uuid4()),
        }
    }


def commit_metrics(files: Sequence[DataFile], removal_metrics: Mapping[str, int]) -> dict[str, int]:
    """Return the metrics of written and removed data, under Delta's names."""
    copied = removal_metrics.get("numCopiedRows", 0)
    return {
        "numFiles": len(files),
        "numOutputRows": sum(file.rows for file in files) + copied,
        "numOutputBytes": sum(file.size_bytes for file in files),
        **removal_metrics,
    }


def create_actions(new: NewTable) -> list[dict[str, Any]]:
    """Build the protocol and metaData actions of a new table."""
    properties = dict(new.properties)
    reader = int(properties.pop("delta.minReaderVersion", READER))
    writer = int(properties.pop("delta.minWriterVersion", WRITERS[0]))
    protocol: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if properties.get(VECTORS_ENABLED) == "true":
        feed = (FEED_FEATURE,) if properties.get(FEED_ENABLED) == "true" else ()
        protocol = vectors_protocol((*IMPLIED[WRITERS[0]], *feed))
    return [
        {"protocol": protocol},
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


def vectors_protocol(features: Iterable[str]) -> dict[str, Any]:
    """Return the protocol of a table with deletion vectors and these writer features."""
    reader, writer = FEATURE_PROTOCOL
    names = dict.fromkeys((*features, VECTORS_FEATURE))
    return {
        "minReaderVersion": reader,
        "minWriterVersion": writer,
        "readerFeatures": [VECTORS_FEATURE],
        "writerFeatures": list(names),
    }


def add_action(file: DataFile, *, data_change: bool = True) -> dict[str, Any]:
    """Build the action that adds a data file."""
    return {
        "add": {
            # Partition folders are spelled as Spark does it.
            "path": quote(file.path, safe="/="),
            "partitionValues": file.partition,
            "size": file.size_bytes,
            "modificationTime": _now(),
            "dataChange": data_change,
            "stats": file.stats,
        }
    }


def change_action(file: DataFile) -> dict[str, Any]:
    """Build the action that adds a change file."""
    return {
        "cdc": {
            "path": quote(file.path, safe="/="),
            "partitionValues": file.partition,
            "size": file.size_bytes,
            "dataChange": False,
        }
    }


def remove_action(file: LoggedFile, *, data_change: bool = True, rows: int | None = None) -> dict[str, Any]:
    """Build the action that removes a data file; of one that is added again, with its number of rows."""
    return {
        "remove": {
            "path": file.logged_path,
            "deletionTimestamp": _now(),
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": file.partition,
            "size": file.size_bytes,
            **({} if file.vector is None else {"deletionVector": file.vector}),
            **({} if rows is None else {"stats": json.encode({"numRecords": rows}).decode()}),
        }
    }


def shrink_action(add: Add, rows: int, vector: DeletionVector) -> dict[str, Any]:
    """Build the action that adds a file again with a deletion vector; it accompanies a `remove_action`."""
    stats = {**json.decode(add.stats or "{}"), "numRecords": rows, "tightBounds": False}
    encoded = json.encode(stats).decode()
    return {"add": structs.replace(add, data_change=True, stats=encoded, deletion_vector=vector)}


def alter_actions(
    state: LogState, properties: Mapping[str, str], columns: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Build the action that sets properties (an empty value unsets one); none if nothing changes.

    `columns` are fields of the metadata that describe the columns, if these are replaced with all rows.
    """
    before = state.metadata.get("configuration", {})
    after = {key: value for key, value in {**before, **properties}.items() if properties.get(key) != ""}
    if after == before and not columns:
        return []
    return [{"metaData": {**state.metadata, **columns, "configuration": after}}]


def transaction_action(commit: Commit) -> dict[str, Any]:
    """Build the action that records the application transaction, which makes the commit idempotent."""
    return {"txn": {"appId": commit.run_id, "version": commit.sequence, "lastUpdated": _now()}}


def write_entry(
    location: str, version: int, actions: Iterable[Mapping[str, Any]], interval: int = 10
) -> bool:
    """Write the entry of a version, and a checkpoint every `interval` versions; False if the entry exists."""
    content = b"".join(json.encode(action) + b"\n" for action in actions)
    if not folder_of(location).create(entry_path(version), content):
        return False
    if version and version % interval == 0:
        # The version is made. Without a checkpoint readers only take longer, until the next one.
        with suppress(StorageFailure):
            write_checkpoint(location)
    return True


def write_checkpoint(location: str) -> int:
    """Write a checkpoint of the newest version of a table, and return that version."""
    # Imported here: most commits write no checkpoint.
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(location, storage_options=store_options(location))
        table.create_checkpoint()
        return int(table.version())
    except (DeltaError, OSError) as problem:
        # deltalake's message may have parts of a request to a store, with its signature.
        why = str(problem) if is_local(location) else type(problem).__name__
        raise StorageFailure(
            f"a checkpoint of {location} cannot be written: {why}",
            "check that its log is complete and that _delta_log is writable",
        ) from problem


def write_first_checkpoint(location: str, version: int, created: Sequence[Mapping[str, Any]]) -> None:
    """Write the checkpoint of a version without rows, so that no reader needs the log before it."""
    # Imported here: only a damaged log needs it.
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        # A checkpoint does not have the number of its version: that of a table's first one will do.
        write_entry(folder, 0, created)
        write_checkpoint(folder)
        content = folder_of(folder).read(f"{LOG}/{0:020}.checkpoint.parquet")
    folder_of(location).create(f"{LOG}/{version:020}.checkpoint.parquet", content)


def _now() -> int:
    return int(time.time() * 1000)
