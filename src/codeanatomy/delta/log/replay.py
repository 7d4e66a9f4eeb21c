"""What the log of a local table says at a version, read by Python alone: a checkpoint and later entries.

    state = state_of("/lake/graph/cpg_nodes", 23)     # 00..20.checkpoint.parquet, 00..21.json to 00..23.json
    state.adds["node_kind=CLASS/part-0e6f.parquet"].deletion_vector

deltalake reads logs too, but keeps two things to itself: deletion vectors, and the actions as they were
written, which whoever adds a file again or brings a version back has to repeat.

Checkpoints in one file or in parts are used; of those of the second kind (`v2Checkpoint`) the entries are
read instead. Tests: `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, json

from codeanatomy.delta.log.deletion_vectors import DeletionVector

# The feature of a table whose files may have vectors.
VECTORS_FEATURE = "deletionVectors"
ENTRY = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


class Add(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A data file becomes part of a table."""

    # As the log spells it.
    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None


class Remove(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A data file is part of it no longer, or no longer with this vector."""

    path: str
    data_change: bool = True
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    deletion_vector: DeletionVector | None = None


class ChangeFile(Struct, frozen=True, rename="camel"):
    """A file with the rows that a commit has changed."""

    path: str
    partition_values: dict[str, str | None]


class Action(Struct, frozen=True, rename="camel"):
    """A line of an entry; one of these, or something that is not asked for."""

    add: Add | None = None
    remove: Remove | None = None
    cdc: ChangeFile | None = None
    # As they were written.
    protocol: dict[str, Any] | None = None
    meta_data: dict[str, Any] | None = None


DECODER = json.Decoder(Action)


class LogState(Struct, frozen=True):
    """A version of a table."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]
    # By path.
    adds: dict[str, Add]

    @property
    def has_vectors(self) -> bool:
        """Whether files of it may have deletion vectors."""
        return "deletionVectors" in self.protocol.get("readerFeatures", ())


def logged_versions(location: str) -> list[int]:
    """The versions that there are entries of."""
    log = Path(location, "_delta_log")
    paths = log.iterdir() if log.is_dir() else ()
    return sorted(int(found[1]) for path in paths if (found := ENTRY.fullmatch(path.name)))


def entry_path(location: str, version: int) -> Path:
    """Where the entry of a version is."""
    return Path(location, "_delta_log", f"{version:020}.json")


def read_actions(location: str, version: int) -> list[Action]:
    """What the commit of a version has done."""
    return DECODER.decode_lines(entry_path(location, version).read_bytes())


def read_commit_info(location: str, version: int) -> dict[str, Any]:
    """What the commit of a version says of itself, which is at the begin of its entry."""
    with entry_path(location, version).open("rb") as lines:
        return next((info for line in lines if (info := json.decode(line).get("commitInfo"))), {})


def replay_log(location: str, version: int) -> LogState:
    """A version, whose entries are there from the newest checkpoint on."""
    start, parts = _checkpoint(location, version)
    adds: dict[str, Add] = {}
    seen: set[str] = set()
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    # The newest word on a path counts; within a commit a file that is removed and added is there.
    for number in range(version, start, -1):
        told = read_actions(location, number)
        fresh = {each.add.path: each.add for each in told if each.add}
        adds |= {path: add for path, add in fresh.items() if path not in seen}
        seen |= fresh.keys() | {each.remove.path for each in told if each.remove}
        protocol = protocol or next((each.protocol for each in told if each.protocol), None)
        metadata = metadata or next((each.meta_data for each in told if each.meta_data), None)
    for each in _checkpointed(parts):
        if each.add and each.add.path not in seen:
            adds[each.add.path] = each.add
        protocol, metadata = protocol or each.protocol, metadata or each.meta_data
    return LogState(protocol or {}, metadata or {}, adds)


def replay_vectors(location: str, version: int) -> dict[str, DeletionVector]:
    """The deletion vectors of a version, by the data file's path as the log spells it."""
    adds = replay_log(location, version).adds.values()
    return {add.path: add.deletion_vector for add in adds if add.deletion_vector is not None}


def complete_checkpoints(location: str) -> dict[int, list[Path]]:
    """The files of each checkpoint that is whole, by version."""
    found: dict[tuple[int, int], list[Path]] = {}
    for path in Path(location, "_delta_log").iterdir():
        name = CHECKPOINT.fullmatch(path.name)
        if name is not None:
            found.setdefault((int(name[1]), int(name[2] or 1)), []).append(path)
    return {number: paths for (number, count), paths in found.items() if len(paths) == count}


def _checkpoint(location: str, version: int) -> tuple[int, list[Path]]:
    """The newest checkpoint that is not after a version, and its files; -1 where there is none."""
    whole = complete_checkpoints(location)
    newest = max((number for number in whole if number <= version), default=-1)
    return newest, whole.get(newest, [])


def _checkpointed(parts: list[Path]) -> Iterator[Action]:
    if not parts:
        return
    # Here: it reads what logs tell of files, and is not needed for most logs.
    from codeanatomy.delta.read.duck import lookup_connection, parquet_relation, translate_errors

    with translate_errors(), lookup_connection() as found:
        rows = found.execute(
            f"SELECT add, protocol, metaData FROM {parquet_relation(map(str, parts))}"
            " WHERE add.path IS NOT NULL OR metaData.id IS NOT NULL OR protocol.minReaderVersion IS NOT NULL"
        ).fetchall()
    for add, protocol, metadata in rows:
        yield Action(
            add=convert(_said(add), Add) if add else None,
            protocol=_said(protocol),
            meta_data=_said(metadata),
        )


def _said(action: dict[str, Any] | None) -> dict[str, Any] | None:
    """An action without what was not said of it, which a checkpoint has as nulls."""
    return None if action is None else {name: part for name, part in action.items() if part is not None}
