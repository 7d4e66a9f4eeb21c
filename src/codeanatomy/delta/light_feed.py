"""The change feed without a JVM: whose rows the commits of a window have inserted or deleted.

    changed_owners("lake", "cpg_nodes", 5, 7, "owner_file_id", "requests")     # frozenset({"file:3b1c..."})

What a commit has changed follows from its entry, as in Spark's feed (`delta.feed`): the rows of its change
files where it has some, else those of the files that it added and removed; of a file that is both, the rows
in which the two deletion vectors differ. A window that cannot be told in full is a FeedLost.

Tests: `tests/unit/delta/test_light_feed.py`.
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
from codeanatomy.delta.log.replay import Action, Add, Remove, read_actions, replay_log
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
    """Rows of a data file that a commit has inserted or deleted."""

    path: str
    partition: dict[str, str | None]
    # Before and after; of a file that came or went the one that it had, twice.
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
    """The values that a column has in rows of a repository that the commits of a closed window changed."""
    versions = _window(root, name, first_version, last_version, allow_out_of_range=allow_out_of_range)
    if not versions:
        return frozenset()
    place = location(local_path(root), name)
    _require_recorded(place, name, versions.start)
    rows = [
        _rows_of(place, changed, column, repo_id)
        for version in versions
        for changed in _changed(place, name, version)
    ]
    if not rows:
        return frozenset()
    with translate_errors(), lookup_connection() as database:
        return frozenset(owner for (owner,) in database.execute(" UNION ".join(rows)).fetchall())


def _window(root: str, name: str, first: int, last: int, *, allow_out_of_range: bool) -> range:
    """The versions of a window that are there."""
    if first < 0 or last < first - 1:
        raise UsageError(
            f"versions {first}..{last} are no window", "start at 0 or later, end after the start"
        )
    newest = newest_version(root, name)
    if first > newest and not allow_out_of_range:
        raise FeedOutOfRange(
            f"the window starts at version {first}, the newest of {name} is {newest}",
            "wait for a newer version, or set allow_out_of_range to read it as empty",
        )
    return range(first, min(last, newest) + 1)


def _require_recorded(place: str, name: str, version: int) -> None:
    try:
        properties = replay_log(place, version).metadata.get("configuration", {})
    except FileNotFoundError as problem:
        raise _lost_entry(name, version) from problem
    if properties.get(RECORDED) != "true":
        raise FeedLost(
            f"{name} did not record changes at version {version}",
            f"enable change_data_feed for the table; until then {READ_INSTEAD}",
        )


def _lost_entry(name: str, version: int) -> FeedLost:
    return FeedLost(f"the log of {name} has no entry for version {version}", READ_INSTEAD)


def _changed(place: str, name: str, version: int) -> Iterator[ChangedRows]:
    """What a commit has changed; all of it must be there still."""
    try:
        told = read_actions(place, version)
    except FileNotFoundError as problem:
        raise _lost_entry(name, version) from problem
    for each in told:
        if each.meta_data and each.meta_data.get("configuration", {}).get(RECORDED) != "true":
            raise FeedLost(f"{name} stopped recording changes at version {version}", READ_INSTEAD)
    for changed in _of_entry(told):
        files = [Path(place, changed.path), *(vector_path(place, each) for each in changed.vectors if each)]
        for file in files:
            if file is not None and not file.is_file():
                raise FeedLost(f"a file of version {version} of {name} was vacuumed: {file}", READ_INSTEAD)
        yield changed


def _of_entry(told: Sequence[Action]) -> Iterator[ChangedRows]:
    written = [each.cdc for each in told if each.cdc]
    if written:
        yield from (ChangedRows(unquote(each.path), each.partition_values) for each in written)
        return
    before: dict[str, Remove] = {
        each.remove.path: each.remove for each in told if each.remove and each.remove.data_change
    }
    after: dict[str, Add] = {each.add.path: each.add for each in told if each.add and each.add.data_change}
    for path in dict.fromkeys((*before, *after)):
        sides = [side for side in (before.get(path), after.get(path)) if side is not None]
        old, new = sides[0].deletion_vector, sides[-1].deletion_vector
        if len(sides) == 1 or old != new:
            yield ChangedRows(unquote(path), sides[-1].partition_values or {}, (old, new))


def _rows_of(place: str, changed: ChangedRows, column: str, repo_id: str) -> str:
    """The values of the column, in SQL."""
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
