"""Read the change data feed without a JVM: the owners of rows inserted or deleted in a window of versions.

    changed_owners("lake", "cpg_nodes", 5, 7, "owner_file_id", "requests")     # frozenset({"file:rZEv..."})

The changes of a commit follow from its log entry, as in Spark's feed (`delta.feed`): the rows of its change
files if it has any, else the rows of the files it added and removed; if a file was both, the rows in which
the two deletion vectors differ. FeedLost is raised if the changes of a window are incomplete. Versions that a
later one of the window undoes (a restore to a version of the window, or to the one before it) have no part in
it: what a run that died has written, and its rollback, cancel each other.

Tests: `tests/unit/delta/test_light_feed.py`, `tests/spark/test_light_feed.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from msgspec import Struct

from codeanatomy.delta.log.deletion_vectors import (
    DeletionVector,
    encode_bits,
    read_vector,
    removed_bits,
    vector_path,
)
from codeanatomy.delta.log.replay import Action, Add, Remove, read_actions, read_commit_info, replay_log
from codeanatomy.delta.read.duck import (
    local_path,
    lookup_connection,
    parquet_relation,
    rows_at,
    rows_except,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.light import location, newest_version
from codeanatomy.errors import FeedLost, FeedOutOfRange, UsageError

RECORDED = "delta.enableChangeDataFeed"
REPOSITORY = "repo_id"
READ_INSTEAD = "build without the feed (--full)"


class ChangedRows(Struct, frozen=True):
    """Rows of a data file that a commit inserted or deleted."""

    path: str
    partition: dict[str, str | None]
    # Deletion vectors before and after; the same one twice if the file was only added or only removed.
    vectors: tuple[DeletionVector | None, DeletionVector | None] = (None, None)


def changed_owners(
    root: str,
    name: str,
    first_version: int,
    last_version: int,
    column: str,
    repo_id: str,
    *,
    allow_out_of_range: bool = False,
) -> frozenset[str]:
    """Return the values of a column in the rows of a repository that changed within a closed window."""
    versions = _window(root, name, first_version, last_version, allow_out_of_range=allow_out_of_range)
    if not versions:
        return frozenset()
    place = location(local_path(root), name)
    _require_recorded(place, name, versions.start)
    rows = [
        _select_values(place, changed, column, repo_id)
        for version in _kept_versions(place, name, versions)
        for changed in _changes(place, name, version)
    ]
    if not rows:
        return frozenset()
    with translate_errors(), lookup_connection() as database:
        return frozenset(owner for (owner,) in database.execute(" UNION ".join(rows)).fetchall())


def _window(root: str, name: str, first: int, last: int, *, allow_out_of_range: bool) -> range:
    """Return the existing versions of a window."""
    if first < 0:
        raise UsageError(f"start version {first} is negative", "start at version 0 or later")
    if last < first - 1:
        raise UsageError(f"start version {first} is after end version {last}", "end at the start or later")
    newest = newest_version(root, name)
    if first > newest and not allow_out_of_range:
        raise FeedOutOfRange(
            f"start version {first} is after the newest version {newest} of {name}",
            "wait for a newer version, or set allow_out_of_range to get an empty feed",
        )
    return range(first, min(last, newest) + 1)


def _require_recorded(place: str, name: str, version: int) -> None:
    try:
        properties = replay_log(place, version).metadata.get("configuration", {})
    except FileNotFoundError as problem:
        raise _missing_entry(name, version) from problem
    if properties.get(RECORDED) != "true":
        raise FeedLost(
            f"{name} did not record changes at version {version}",
            f"enable change_data_feed for the table; until then {READ_INSTEAD}",
        )


def _kept_versions(place: str, name: str, versions: range) -> list[int]:
    """Return the versions of a window without those that were undone, and without their restores."""
    kept, version = [], versions[-1]
    while version >= versions.start:
        target = _restored_version(place, name, version)
        if target is not None and versions.start - 1 <= target < version:
            version = target
        else:
            kept.append(version)
            version -= 1
    return kept[::-1]


def _restored_version(place: str, name: str, version: int) -> int | None:
    """Return the version that a commit has restored; None if it is no restore."""
    try:
        info = read_commit_info(place, version)
    except FileNotFoundError as problem:
        raise _missing_entry(name, version) from problem
    if info.get("operation") != "RESTORE":
        return None
    target = (info.get("operationParameters") or {}).get("version")
    return None if target is None else int(target)


def _missing_entry(name: str, version: int) -> FeedLost:
    return FeedLost(f"the log of {name} has no entry for version {version}", READ_INSTEAD)


def _changes(place: str, name: str, version: int) -> Iterator[ChangedRows]:
    """Yield the changes of a commit; raise FeedLost if a file of them is missing."""
    try:
        actions = read_actions(place, version)
    except FileNotFoundError as problem:
        raise _missing_entry(name, version) from problem
    for each in actions:
        if each.meta_data and each.meta_data.get("configuration", {}).get(RECORDED) != "true":
            raise FeedLost(f"{name} stopped recording changes at version {version}", READ_INSTEAD)
    for changed in _changes_in(actions):
        files = [Path(place, changed.path), *(vector_path(place, each) for each in changed.vectors if each)]
        for file in files:
            if file is not None and not file.is_file():
                raise FeedLost(f"a file of version {version} of {name} was vacuumed: {file}", READ_INSTEAD)
        yield changed


def _changes_in(actions: Sequence[Action]) -> Iterator[ChangedRows]:
    change_files = [each.cdc for each in actions if each.cdc]
    if change_files:
        yield from (ChangedRows(unquote(each.path), each.partition_values) for each in change_files)
        return
    before: dict[str, Remove] = {
        each.remove.path: each.remove for each in actions if each.remove and each.remove.data_change
    }
    after: dict[str, Add] = {each.add.path: each.add for each in actions if each.add and each.add.data_change}
    for path in dict.fromkeys((*before, *after)):
        sides = [side for side in (before.get(path), after.get(path)) if side is not None]
        old, new = sides[0].deletion_vector, sides[-1].deletion_vector
        if len(sides) == 1 or old != new:
            yield ChangedRows(unquote(path), sides[-1].partition_values or {}, (old, new))


def _select_values(place: str, changed: ChangedRows, column: str, repo_id: str) -> str:
    """Return the SQL query for the column's values in changed rows."""
    paths, (old, new) = [f"{place}/{changed.path}"], changed.vectors
    if old != new:
        differing = read_vector(place, old) ^ read_vector(place, new)
        rows = rows_at(paths, encode_bits(differing))
    else:
        rows = parquet_relation(paths) if new is None else rows_except(paths, removed_bits(place, new))
    value, repository = (
        sql_literal(changed.partition[name]) if name in changed.partition else f'"{name}"'
        for name in (column, REPOSITORY)
    )
    return f"SELECT {value} FROM {rows} WHERE {repository} = {sql_literal(repo_id)} AND {value} IS NOT NULL"
