"""Replay the log of a table in Python, local or in an object store: a checkpoint and the entries after it.

    state = replay_log("/lake/graph/cpg_nodes", 23)   # 00..20.checkpoint.parquet, 00..21.json to 00..23.json
    state.adds["node_kind=CLASS/part-0e6f.parquet"].deletion_vector

deltalake reads logs too, but exposes neither deletion vectors nor the original actions, which must be
repeated by a commit that adds a file again or restores a version.

Checkpoints are in one file, in parts, or of version 2: a file that lists further ones (sidecars).
Tests: `tests/unit/delta/test_deletion_vectors.py`, `tests/spark/test_features.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, convert, json, structs

from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.folder import Folder, StoredFile, folder_of

# The reader feature of tables with deletion vectors.
VECTORS_FEATURE = "deletionVectors"
LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
ENTRY = re.compile(r"(\d{20})\.json")
# In one file, in parts, or of version 2.
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")


class Add(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The action that adds a data file to a table."""

    # Spelled as in the log.
    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None


class Remove(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The action that removes a data file, or its combination with a deletion vector."""

    path: str
    data_change: bool = True
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    deletion_vector: DeletionVector | None = None


class ChangeFile(Struct, frozen=True, rename="camel"):
    """The action that adds a change data file, with the rows a commit changed."""

    path: str
    partition_values: dict[str, str | None]


class Transaction(Struct, frozen=True, rename="camel"):
    """The action that records the last transaction of an application."""

    app_id: str
    version: int


class Sidecar(Struct, frozen=True, rename="camel"):
    """The action that names a further file of a checkpoint."""

    path: str


class Action(Struct, frozen=True, rename="camel"):
    """A line of a log entry: one of these actions, or all None for other kinds."""

    add: Add | None = None
    remove: Remove | None = None
    cdc: ChangeFile | None = None
    txn: Transaction | None = None
    sidecar: Sidecar | None = None
    # Raw JSON objects.
    protocol: dict[str, Any] | None = None
    meta_data: dict[str, Any] | None = None


DECODER = json.Decoder(Action)
# Number of checkpoints that are kept in memory.
MAX_CHECKPOINTS = 128
# The actions of a checkpoint that are read, with a field that each of them has.
KINDS = {"add": "path", "protocol": "minReaderVersion", "metaData": "id", "txn": "appId", "sidecar": "path"}


class LogState(Struct, frozen=True):
    """The state of a table at a version."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]
    # The current data files by path.
    adds: dict[str, Add]
    # The last transaction of each application.
    transactions: dict[str, int] = {}

    @property
    def has_vectors(self) -> bool:
        """Return whether data files may have deletion vectors."""
        return VECTORS_FEATURE in self.protocol.get("readerFeatures", ())


class LogListing(Struct, frozen=True):
    """The files of a log: its entries and its complete checkpoints, by version."""

    entries: dict[int, StoredFile]
    checkpoints: dict[int, list[StoredFile]]

    @property
    def newest(self) -> int:
        """Return the newest version; -1 if there is no table."""
        return max((*self.entries, *self.checkpoints), default=-1)

    def checkpoint_before(self, version: int) -> int:
        """Return the newest checkpoint up to a version; -1 if there is none."""
        return max((number for number in self.checkpoints if number <= version), default=-1)


def list_log(location: str) -> LogListing:
    """List the log of a table."""
    entries, parts = {}, dict[tuple[int, int], list[StoredFile]]()
    for file in folder_of(location).list_files(LOG):
        if match := ENTRY.fullmatch(file.name):
            entries[int(match[1])] = file
        elif match := CHECKPOINT.fullmatch(file.name):
            parts.setdefault((int(match[1]), int(match[2] or 1)), []).append(file)
    # Several checkpoints of version 2, of one version, have the same content.
    complete = {number: files[:count] for (number, count), files in parts.items() if len(files) >= count}
    return LogListing(dict(sorted(entries.items())), complete)


def logged_versions(location: str) -> list[int]:
    """Return the versions that have log entries, in order."""
    return list(list_log(location).entries)


def newest_logged(location: str) -> int:
    """Return the newest version, from log entries and checkpoints. Raise ValueError if there is none."""
    newest = list_log(location).newest
    if newest < 0:
        raise ValueError(f"there is no table at {location}")
    return newest


def entry_path(version: int) -> str:
    """Return the path of the log entry of a version in the folder of its table."""
    return f"{LOG}/{version:020}.json"


def read_actions(location: str, version: int) -> list[Action]:
    """Read the actions of the commit of a version."""
    return DECODER.decode_lines(folder_of(location).read(entry_path(version)))


def commit_time_ms(location: str, version: int) -> int:
    """Return the commit time of a version, as Delta defines it: that of its entry; 0 if the entry is gone."""
    entry = folder_of(location).stat(entry_path(version))
    return 0 if entry is None else entry.modified_ms


def read_commit_info(location: str, version: int) -> dict[str, Any]:
    """Read the commitInfo of a version, which is at the beginning of its log entry."""
    lines = folder_of(location).read(entry_path(version)).splitlines()
    return next((info for line in lines if (info := json.decode(line).get("commitInfo"))), {})


def replay_log(location: str, version: int, listing: LogListing | None = None) -> LogState:
    """Return the state of a table at a version, from the newest checkpoint and the entries after it."""
    listing = listing or list_log(location)
    start = listing.checkpoint_before(version)
    adds: dict[str, Add] = {}
    transactions: dict[str, int] = {}
    seen: set[str] = set()
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    # The newest action on a path wins; within a commit, a file that is removed and added stays.
    for number in range(version, start, -1):
        actions = read_actions(location, number)
        fresh = {each.add.path: each.add for each in actions if each.add}
        adds |= {path: add for path, add in fresh.items() if path not in seen}
        seen |= fresh.keys() | {each.remove.path for each in actions if each.remove}
        transactions = {**{each.txn.app_id: each.txn.version for each in actions if each.txn}, **transactions}
        protocol = protocol or next((each.protocol for each in actions if each.protocol), None)
        metadata = metadata or next((each.meta_data for each in actions if each.meta_data), None)
    for each in _read_checkpoint(folder_of(location), listing.checkpoints.get(start, ())):
        if each.add and each.add.path not in seen:
            adds[each.add.path] = each.add
        if each.txn:
            transactions.setdefault(each.txn.app_id, each.txn.version)
        protocol, metadata = protocol or each.protocol, metadata or each.meta_data
    return LogState(protocol or {}, metadata or {}, adds, transactions)


def _read_checkpoint(folder: Folder, files: Sequence[StoredFile]) -> Iterator[Action]:
    """Yield the actions of a checkpoint, with those of the further files that it names."""
    named = [structs.replace(file, name=f"{LOG}/{file.name}") for file in files]
    actions = [action for file in named for action in _read_checkpoint_file(folder.location, file)]
    yield from actions
    for path in dict.fromkeys(each.sidecar.path for each in actions if each.sidecar):
        yield from _read_checkpoint_file(folder.location, StoredFile(f"{SIDECARS}/{path}", 0, 0))


# A commit opens its table several times, and a checkpoint never changes.
@lru_cache(MAX_CHECKPOINTS)
def _read_checkpoint_file(location: str, file: StoredFile) -> Sequence[Action]:
    folder, path = folder_of(location), file.name
    if path.endswith(".json"):
        return DECODER.decode_lines(folder.read(path))
    # Imported here: `delta.read.duck` imports this module, and most logs have no checkpoint.
    from codeanatomy.delta.read.duck import lookup_connection, parquet_relation, translate_errors

    relation = parquet_relation([folder.local_path(path, file.tag)])
    with translate_errors(), lookup_connection() as connection:
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
        kinds = [name for name in KINDS if name in names]
        is_read = " OR ".join(f"{name}.{KINDS[name]} IS NOT NULL" for name in kinds)
        rows = connection.execute(f"SELECT {', '.join(kinds)} FROM {relation} WHERE {is_read}").fetchall()
    return [_checkpoint_action(dict(zip(kinds, row, strict=True))) for row in rows]


def _checkpoint_action(columns: dict[str, dict[str, Any] | None]) -> Action:
    """Return the action of a row of a checkpoint: a column for each kind, with nulls for missing fields."""
    given = {
        name: {field: part for field, part in value.items() if part is not None}
        for name, value in columns.items()
        if value is not None and value[KINDS[name]] is not None
    }
    return convert(given, Action)
