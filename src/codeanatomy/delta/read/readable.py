"""Whether a version of a table can still be read: what the log says of it, and the files that it names.

    missing_files("lake", "cpg_nodes", 4)       # ("node_kind=CLASS/part-0e6f.parquet",)
    require_readable("lake", "cpg_nodes", 4)    # VersionGone: 1 of 63 files is gone ...; left: 5 to 9
    are_alike("lake", "cpg_nodes", 2, 7)        # version 7 has the files of version 2 again

Maintenance removes files and log entries that nobody should need any more. Whoever needs an old version
nevertheless asks here first, so that nothing is half done when it turns out to be gone. Of a remote table
only the log is looked at. Tests: `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from codeanatomy.delta.log.replay import (
    LogState,
    complete_checkpoints,
    logged_versions,
    read_actions,
    replay_log,
)
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import location, logged_paths, newest_version
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import CodeAnatomyError, StorageFailure, TableMissing, VersionGone

# Versions that are looked at to tell which are left.
LOOKED_AT = 50


def missing_files(root: str, name: str, version: int) -> tuple[str, ...]:
    """The data files and deletion vectors of a version that are not there; the log has to tell of it."""
    paths = logged_paths(root, name, version)
    if not is_local(root):
        return ()
    folder = location(local_path(root), name)
    return tuple(path for path in paths if not Path(folder, path).is_file())


def is_readable(root: str, name: str, version: int) -> bool:
    """Whether the log can be replayed to a version, and all that it names is there."""
    try:
        return not missing_files(root, name, version)
    except (StorageFailure, TableMissing):
        return False


def require_readable(root: str, name: str, version: int) -> None:
    """Refuse a version that is not there any more, and say which are."""
    what = f"version {version} of {name} at {location(root, name)}"
    try:
        newest = newest_version(root, name)
    except TableMissing as problem:
        raise VersionGone(f"{what} is gone: so is the table", "bring it back from a copy") from problem
    if not 0 <= version <= newest:
        raise _gone(root, name, f"there is no {what}: the newest is {newest}")
    try:
        lost = missing_files(root, name, version)
        count = len(logged_paths(root, name, version))
    except StorageFailure as problem:
        raise _gone(root, name, f"{what} is gone: entries of its log are missing or damaged") from problem
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        raise _gone(
            root,
            name,
            f"{what} is gone: {len(lost):,} of its {count:,} files {verb} missing, such as {lost[0]}",
        )


def have_same_content(root: str, name: str, one: int, other: int) -> bool:
    """Whether two versions have the same files, vectors and columns, and so the same rows.

    Of a remote table only a version and itself.
    """
    if one == other or not is_local(root):
        return one == other
    return _content(replay_table(root, name, one)) == _content(replay_table(root, name, other))


def has_only_rewrites(place: str, version: int, newest: int) -> bool:
    """Whether the commits after a version of a local table have only written its rows anew."""
    told = [action for number in range(version + 1, newest + 1) for action in read_actions(place, number)]
    sides = [side for action in told for side in (action.add, action.remove) if side is not None]
    changed = any(action.meta_data or action.protocol or action.cdc for action in told)
    return newest > version and not changed and not any(side.data_change for side in sides)


def replay_table(root: str, name: str, version: int) -> LogState:
    """What the log of a local table says at a version; one that only Delta can replay is a StorageFailure."""
    place = location(local_path(root), name)
    try:
        return replay_log(place, version)
    except OSError as problem:
        # Before a checkpoint of the second kind, entries may be gone.
        raise StorageFailure(
            f"the log of {name} at {place} cannot be replayed to version {version}: {problem}",
            "read it with Spark, or build the table without v2_checkpoints",
        ) from problem


def _content(state: LogState) -> tuple[dict[str, Any], Any, Any]:
    files = {path: add.deletion_vector for path, add in state.adds.items()}
    return files, state.metadata.get("schemaString"), state.metadata.get("partitionColumns")


def _gone(root: str, name: str, why: str) -> CodeAnatomyError:
    if not is_local(root):
        return VersionGone(why, "choose a newer version or run")
    place = location(local_path(root), name)
    known = sorted({*logged_versions(place), *complete_checkpoints(place)})
    looked_at = known[-LOOKED_AT:]
    left = [version for version in looked_at if is_readable(root, name, version)]
    told = ", ".join(_ranges(left)) or "none"
    cut = f" (of the newest {LOOKED_AT})" if len(known) > LOOKED_AT else ""
    return VersionGone(f"{why}; versions that are left: {told}{cut}", "choose one of these, or a newer run")


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Numbers in order, for people.

    >>> list(_ranges([0, 4, 5, 6, 8]))
    ['0', '4 to 6', '8']
    """
    for _, found in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        run = [number for _, number in found]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"
