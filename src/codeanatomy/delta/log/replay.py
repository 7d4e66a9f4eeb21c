"""Replay the log of a local table in Python: a checkpoint and the entries after it.

    state = replay_log("/lake/graph/cpg_nodes", 23)   # 00..20.checkpoint.parquet, 00..21.json to 00..23.json
    state.adds["node_kind=CLASS/part-0e6f.parquet"].deletion_vector

deltalake reads logs too, but exposes neither deletion vectors nor the original actions, which must be
repeated by a commit that adds a file again or restores a version.

Checkpoints in one file or in parts are used; `v2Checkpoint` files are skipped in favour of the entries.
Tests: `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, json

from codeanatomy.delta.log.deletion_vectors import DeletionVector

# The reader feature of tables with deletion vectors.
VECTORS_FEATURE = "deletionVectors"
ENTRY = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


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


class Action(Struct, frozen=True, rename="camel"):
    """A line of a log entry: one of these actions, or all None for other kinds."""

    add: Add | None = None
    remove: Remove | None = None
    cdc: ChangeFile | None = None
    # Raw JSON objects.
    protocol: dict[str, Any] | None = None
    meta_data: dict[str, Any] | None = None


DECODER = json.Decoder(Action)


class LogState(Struct, frozen=True):
    """The state of a table at a version."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]
    # The current data files by path.
    adds: dict[str, Add]

    @property
    def has_vectors(self) -> bool:
        """Return whether data files may have deletion vectors."""
        return VECTORS_FEATURE in self.protocol.get("readerFeatures", ())


def logged_versions(location: str) -> list[int]:
    """Return the versions that have log entries, in order."""
    log = Path(location, "_delta_log")
    paths = log.iterdir() if log.is_dir() else ()
    return sorted(int(match[1]) for path in paths if (match := ENTRY.fullmatch(path.name)))


def newest_logged(location: str) -> int:
    """Return the newest version, from log entries and checkpoints. Raise ValueError if there is none."""
    return max([*logged_versions(location), *complete_checkpoints(location)])


def entry_path(location: str, version: int) -> Path:
    """Return the path of the log entry of a version."""
    return Path(location, "_delta_log", f"{version:020}.json")


def read_actions(location: str, version: int) -> list[Action]:
    """Read the actions of the commit of a version."""
    return DECODER.decode_lines(entry_path(location, version).read_bytes())


def read_commit_info(location: str, version: int) -> dict[str, Any]:
    """Read the commitInfo of a version, which is at the beginning of its log entry."""
    with entry_path(location, version).open("rb") as lines:
        return next((info for line in lines if (info := json.decode(line).get("commitInfo"))), {})


def replay_log(location: str, version: int) -> LogState:
    """Return the state of a table at a version, from the newest checkpoint and the entries after it."""
    start, parts = _newest_checkpoint(location, version)
    adds: dict[str, Add] = {}
    seen: set[str] = set()
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    # The newest action on a path wins; within a commit, a file that is removed and added stays.
    for number in range(version, start, -1):
        actions = read_actions(location, number)
        fresh = {each.add.path: each.add for each in actions if each.add}
        adds |= {path: add for path, add in fresh.items() if path not in seen}
        seen |= fresh.keys() | {each.remove.path for each in actions if each.remove}
        protocol = protocol or next((each.protocol for each in actions if each.protocol), None)
        metadata = metadata or next((each.meta_data for each in actions if each.meta_data), None)
    for each in _read_checkpoint(parts):
        if each.add and each.add.path not in seen:
            adds[each.add.path] = each.add
        protocol, metadata = protocol or each.protocol, metadata or each.meta_data
    return LogState(protocol or {}, metadata or {}, adds)


def replay_vectors(location: str, version: int) -> dict[str, DeletionVector]:
    """Return the deletion vectors of a version by data file, spelled as in the log."""
    adds = replay_log(location, version).adds.values()
    return {add.path: add.deletion_vector for add in adds if add.deletion_vector is not None}


def complete_checkpoints(location: str) -> dict[int, list[Path]]:
    """Return the files of each complete checkpoint, by version."""
    parts: dict[tuple[int, int], list[Path]] = {}
    for path in Path(location, "_delta_log").iterdir():
        match = CHECKPOINT.fullmatch(path.name)
        if match is not None:
            parts.setdefault((int(match[1]), int(match[2] or 1)), []).append(path)
    return {number: paths for (number, count), paths in parts.items() if len(paths) == count}


def _newest_checkpoint(location: str, version: int) -> tuple[int, list[Path]]:
    """Return the newest checkpoint up to a version and its files; -1 if there is none."""
    complete = complete_checkpoints(location)
    newest = max((number for number in complete if number <= version), default=-1)
    return newest, complete.get(newest, [])


def _read_checkpoint(parts: list[Path]) -> Iterator[Action]:
    if not parts:
        return
    # Imported here: `delta.read.duck` imports this module, and most logs have no checkpoint.
    from codeanatomy.delta.read.duck import lookup_connection, parquet_relation, translate_errors

    relation = parquet_relation(map(str, parts))
    with translate_errors(), lookup_connection() as connection:
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
        if (
            "sidecar" in names
            and connection.execute(f"SELECT 1 FROM {relation} WHERE sidecar IS NOT NULL LIMIT 1").fetchone()
        ):
            raise ValueError("the files of a checkpoint are listed in further files")
        rows = connection.execute(
            f"SELECT add, protocol, metaData FROM {relation}"
            " WHERE add.path IS NOT NULL OR metaData.id IS NOT NULL OR protocol.minReaderVersion IS NOT NULL"
        ).fetchall()
    for add, protocol, metadata in rows:
        yield Action(
            add=convert(_without_nulls(add), Add) if add else None,
            protocol=_without_nulls(protocol),
            meta_data=_without_nulls(metadata),
        )


def _without_nulls(action: dict[str, Any] | None) -> dict[str, Any] | None:
    """Drop the null fields of an action: a checkpoint has nulls where an entry has no field."""
    return None if action is None else {name: part for name, part in action.items() if part is not None}
