"""Check whether a table version can still be read: its log entries, data files and deletion vectors.

    missing_files("lake", "cpg_nodes", 4)            # ("node_kind=CLASS/part-0e6f.parquet",)
    require_readable("lake", "cpg_nodes", 4)         # VersionGone: 1 of its 63 files is missing ...
    have_same_content("lake", "cpg_nodes", 2, 7)     # version 7 has the files of version 2 again

Maintenance deletes files and log entries that are no longer needed. Commands that use an old version check it
here first, so that they do not fail halfway. Tests: `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.replay import (
    LogState,
    list_log,
    read_actions,
)
from codeanatomy.delta.read.light import logged_paths, state_paths
from codeanatomy.delta.read.open_table import location, newest_version, replay_table
from codeanatomy.errors import CodeAnatomyError, StorageFailure, StoreUnavailable, TableMissing, VersionGone

# Number of versions checked for the list of readable versions in an error message.
MAX_CHECKED = 50


def missing_files(root: str, name: str, version: int) -> tuple[str, ...]:
    """Return the data files and deletion vectors of a version that do not exist; its log must be readable."""
    place = location(root, name)
    return tuple(folder_of(place).missing(logged_paths(root, name, version)))


def is_readable(root: str, name: str, version: int) -> bool:
    """Return whether the log can be replayed to a version, and its files exist and look whole."""
    place = location(root, name)
    try:
        state = replay_table(root, name, version)[1]
        if folder_of(place).damaged(state_paths(state)):
            return False
        for add in state.adds.values():
            read_vector(place, add.deletion_vector)
    except StoreUnavailable:
        raise
    except (StorageFailure, TableMissing):
        return False
    return True


def damaged_tables(root: str, versions: Mapping[str, int]) -> list[str]:
    """Return the tables of which these versions cannot be read, in order."""
    return [name for name, version in versions.items() if not is_readable(root, name, version)]


def has_readable_log(root: str, name: str) -> bool:
    """Return whether the log of a table can be replayed to its newest version."""
    try:
        replay_table(root, name)
    except StoreUnavailable:
        raise
    except (StorageFailure, TableMissing):
        return False
    return True


def require_readable(root: str, name: str, version: int) -> None:
    """Raise VersionGone, with the versions that are left, if a version cannot be read any more."""
    what = f"version {version} of {name} at {location(root, name)}"
    try:
        newest = newest_version(root, name)
    except TableMissing as problem:
        raise VersionGone(
            f"{what} is gone: the table does not exist", "restore the table from a backup"
        ) from problem
    if not 0 <= version <= newest:
        raise _gone(root, name, f"there is no {what}: the newest is {newest}")
    try:
        logged = logged_paths(root, name, version)
        missing = folder_of(location(root, name)).missing(logged)
    except StoreUnavailable:
        raise
    except StorageFailure as problem:
        raise _gone(root, name, f"{what} is gone: entries of its log are missing or damaged") from problem
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        count = f"{len(missing):,} of its {len(logged):,} files {verb} missing"
        raise _gone(root, name, f"{what} is gone: {count}, such as {missing[0]}")


def have_same_content(root: str, name: str, one: int, other: int) -> bool:
    """Return whether two versions have the same files, vectors and columns, and so the same rows."""
    if one == other:
        return True
    return _content(replay_table(root, name, one)[1]) == _content(replay_table(root, name, other)[1])


def has_only_rewrites(place: str, version: int, newest: int) -> bool:
    """Return whether the commits after a version of a table only rewrote its rows, as OPTIMIZE does."""
    actions = [action for number in range(version + 1, newest + 1) for action in read_actions(place, number)]
    sides = [side for action in actions for side in (action.add, action.remove) if side is not None]
    changed = any(action.meta_data or action.protocol or action.cdc for action in actions)
    return newest > version and not changed and not any(side.data_change for side in sides)


def _content(state: LogState) -> tuple[dict[str, Any], Any, Any]:
    files = {path: add.deletion_vector for path, add in state.adds.items()}
    return files, state.metadata.get("schemaString"), state.metadata.get("partitionColumns")


def _gone(root: str, name: str, why: str) -> CodeAnatomyError:
    listing = list_log(location(root, name))
    known = sorted({*listing.entries, *listing.checkpoints})
    checked = known[-MAX_CHECKED:]
    left = [version for version in checked if is_readable(root, name, version)]
    listed = ", ".join(_ranges(left)) or "none"
    limit = f" (of the newest {MAX_CHECKED})" if len(known) > MAX_CHECKED else ""
    return VersionGone(
        f"{why}; versions that are left: {listed}{limit}", "choose one of these, or a newer run"
    )


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Format sorted numbers as ranges.

    >>> list(_ranges([0, 4, 5, 6, 8]))
    ['0', '4 to 6', '8']
    """
    for _, group in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        run = [number for _, number in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"
