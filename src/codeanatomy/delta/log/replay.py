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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import MsgspecError, Struct, convert, json, structs

from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.folder import Folder, StoredFile, folder_of
from codeanatomy.errors import StorageFailure, StoreUnavailable

# The reader feature of tables with deletion vectors.
VECTORS_FEATURE = "deletionVectors"
LOG = "_delta_log"
# The folder of change files, the only one whose name starts with _ that has rows.
CHANGE_FOLDER = "_change_data"
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
# Checkpoints that are kept in memory, by the size of their files: decoded they take about ten times that.
MAX_CHECKPOINT_BYTES = 16 * 1024**2
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


def list_log(location: str, holding: int | None = None) -> LogListing:
    """List the log of a table.

    A version never changes. So if `holding` one is all that is needed of the listing, an earlier one will do.
    """
    folder = folder_of(location)
    if holding is not None:
        known = _arrange(folder.known_files(LOG))
        if known.newest >= holding:
            return known
    return _arrange(folder.list_files(LOG))


def _arrange(files: Iterable[StoredFile]) -> LogListing:
    entries, parts = {}, dict[tuple[int, int], list[StoredFile]]()
    for file in files:
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
    return folder_of(location).modified_ms(entry_path(version))


def read_commit_info(location: str, version: int) -> dict[str, Any]:
    """Read the commitInfo of a version, which is at the beginning of its log entry."""
    lines = folder_of(location).read(entry_path(version)).splitlines()
    return next((info for line in lines if (info := json.decode(line).get("commitInfo"))), {})


def replay_log(location: str, version: int, listing: LogListing | None = None) -> LogState:
    """Return the state of a table at a version, from the newest checkpoint and the entries after it.

    A damaged checkpoint is not used if an older one, or the entries since version 0, have the same.
    """
    listing = listing or list_log(location, version)
    start = listing.checkpoint_before(version)
    while True:
        try:
            checkpoint = list(_read_checkpoint(folder_of(location), listing.checkpoints.get(start, ())))
            break
        except StoreUnavailable:
            raise
        except (StorageFailure, OSError, MsgspecError):
            older = listing.checkpoint_before(start - 1)
            if not all(number in listing.entries for number in range(older + 1, version + 1)):
                raise
            start = older
    adds: dict[str, Add] = {}
    transactions: dict[str, int] = {}
    seen: set[str] = set()
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    numbers = range(version, start, -1)
    entries = folder_of(location).read_all([entry_path(number) for number in numbers])
    _refuse_empty(numbers, entries)
    # The newest action on a path wins; within a commit, a file that is removed and added stays.
    for entry in entries:
        actions = DECODER.decode_lines(entry)
        fresh = {each.add.path: each.add for each in actions if each.add}
        adds |= {path: add for path, add in fresh.items() if path not in seen}
        seen |= fresh.keys() | {each.remove.path for each in actions if each.remove}
        transactions = {**{each.txn.app_id: each.txn.version for each in actions if each.txn}, **transactions}
        protocol = protocol or next((each.protocol for each in actions if each.protocol), None)
        metadata = metadata or next((each.meta_data for each in actions if each.meta_data), None)
    for each in checkpoint:
        if each.add and each.add.path not in seen:
            adds[each.add.path] = each.add
        if each.txn:
            transactions.setdefault(each.txn.app_id, each.txn.version)
        protocol, metadata = protocol or each.protocol, metadata or each.meta_data
    return LogState(protocol or {}, metadata or {}, adds, transactions)


def _refuse_empty(numbers: Iterable[int], entries: Iterable[bytes]) -> None:
    """Raise ValueError for an entry without an action: the machine stopped while it was written."""
    for number, entry in zip(numbers, entries, strict=True):
        if not entry.strip():
            raise ValueError(f"{entry_path(number)} is empty")


class CheckpointCache:
    """Keep the checkpoint files that were used last, up to MAX_CHECKPOINT_BYTES.

    A commit opens its table several times, and a checkpoint never changes.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, StoredFile], tuple[int, Sequence[Action]]] = {}
        self._lock = Lock()

    def read(self, location: str, file: StoredFile) -> Sequence[Action]:
        """Return the actions of a file."""
        key = location, file
        with self._lock:
            kept = self._files.pop(key, None)
            if kept is not None:
                self._files[key] = kept
                return kept[1]
        size, actions = _read_checkpoint_file(location, file)
        with self._lock:
            self._files[key] = size, actions
            total = sum(size for size, _ in self._files.values())
            while total > MAX_CHECKPOINT_BYTES:
                oldest = next(iter(self._files))
                total -= self._files.pop(oldest)[0]
        return actions


_CHECKPOINTS = CheckpointCache()


def _read_checkpoint(folder: Folder, files: Sequence[StoredFile]) -> Iterator[Action]:
    """Yield the actions of a checkpoint, with those of the further files that it names."""
    named = [structs.replace(file, name=f"{LOG}/{file.name}") for file in files]
    actions = [action for file in named for action in _CHECKPOINTS.read(folder.location, file)]
    yield from actions
    for path in dict.fromkeys(each.sidecar.path for each in actions if each.sidecar):
        yield from _CHECKPOINTS.read(folder.location, StoredFile(f"{SIDECARS}/{path}", 0, 0))


def _read_checkpoint_file(location: str, file: StoredFile) -> tuple[int, Sequence[Action]]:
    """Return the size of a file in bytes, and its actions."""
    folder, path = folder_of(location), file.name
    if path.endswith(".json"):
        content = folder.read(path)
        return len(content), DECODER.decode_lines(content)
    # Imported here: `delta.read.duck` imports this module, and most logs have no checkpoint.
    from codeanatomy.delta.read.duck import lookup_connection, parquet_relation, translate_errors

    copy = folder.local_path(path, file.tag, file.size_bytes)
    relation = parquet_relation([copy])
    with translate_errors(), lookup_connection() as connection:
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
        kinds = [name for name in KINDS if name in names]
        is_read = " OR ".join(f"{name}.{KINDS[name]} IS NOT NULL" for name in kinds)
        rows = connection.execute(f"SELECT {', '.join(kinds)} FROM {relation} WHERE {is_read}").fetchall()
    actions = [_checkpoint_action(dict(zip(kinds, row, strict=True))) for row in rows]
    return Path(copy).stat().st_size, actions


def _checkpoint_action(columns: dict[str, dict[str, Any] | None]) -> Action:
    """Return the action of a row of a checkpoint: a column for each kind, with nulls for missing fields."""
    given = {
        name: {field: part for field, part in value.items() if part is not None}
        for name, value in columns.items()
        if value is not None and value[KINDS[name]] is not None
    }
    return convert(given, Action)
