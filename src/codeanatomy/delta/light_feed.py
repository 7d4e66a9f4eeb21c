"""Read the change data feed without a JVM: the rows inserted or deleted in a window of versions.

    changed_rows("lake", "repo_files_v1", 5, 7, repo_id="requests")      # Arrow, as Spark's readChangeFeed
    changed_owners("lake", "cpg_nodes", 5, 7, "owner_file_id", "requests")     # frozenset({"file:rZEv..."})

    path     ...  _change_type  _commit_version  _commit_timestamp
    api.py   ...  delete        6                2026-05-01 12:00:00 UTC
    api.py   ...  insert        6                2026-05-01 12:00:00 UTC

The changes of a commit follow from its log entry, as in Spark's feed (`delta.feed`): the rows of its change
files if it has any, else the rows of the files it added and removed; if a file was both, the rows in which
the two deletion vectors differ. FeedLost is raised if the changes of a window are incomplete. With a
repository, files whose statistics in the log exclude it are not read, and need not exist.

Versions that a later one of the window undoes (a restore to a version of the window, or to the one before it)
have no part in `changed_owners`: what a run that died has written, and its rollback, cancel each other. With
`skip_undone` they are left out of the other functions, too.

Tests: `tests/unit/delta/test_light_feed.py`, `tests/spark/test_light_feed.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from msgspec import MsgspecError, Struct

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.deletion_vectors import (
    DeletionVector,
    encode_bits,
    read_vector,
    removed_bits,
    vector_path,
)
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.replay import (
    Action,
    Add,
    LogState,
    Remove,
    commit_time_ms,
    read_actions,
    read_commit_info,
    replay_log,
)
from codeanatomy.delta.read.duck import (
    contract_value,
    duck_type,
    lookup_connection,
    parquet_relation,
    rows_at,
    rows_except,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.file_index import MAPPING, logged_files
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.errors import FeedLost, FeedOutOfRange, StorageFailure, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

RECORDED = "delta.enableChangeDataFeed"
TIMESTAMPS = "delta.enableInCommitTimestamps"
REPOSITORY = "repo_id"
# Errors of a log entry that is gone or damaged.
UNREADABLE = (FileNotFoundError, MsgspecError, ValueError)
READ_INSTEAD = "read the whole table at its newest version (build --full does)"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
# Appended to the columns of the table. Times are in UTC, without a zone in DuckDB.
CHANGE_COLUMNS = {CHANGE_TYPE: "VARCHAR", COMMIT_VERSION: "BIGINT", COMMIT_TIMESTAMP: "TIMESTAMP"}
# Types of changes that take a row away; the others (`insert`, `update_postimage`) bring one.
DELETIONS = ("delete", "update_preimage")


class ChangedFile(Struct, frozen=True):
    """A change file of a commit, or a data file of which it inserted or deleted rows."""

    # Spelled as in the log.
    logged_path: str
    partition: dict[str, str | None]
    # None: its rows have the type of their change.
    change: Literal["insert", "delete", "vector"] | None = None
    # Deletion vectors before and after, which differ if `change` is "vector"; else the same one twice.
    vectors: tuple[DeletionVector | None, DeletionVector | None] = (None, None)


class FeedCommit(Struct, frozen=True):
    """The changes of a commit."""

    version: int
    timestamp_ms: int
    files: tuple[ChangedFile, ...]
    # Whether columns have other names in the files.
    is_mapped: bool


def changed_rows(
    root: str,
    name: str,
    first_version: int,
    last_version: int,
    *,
    repo_id: str | None = None,
    skip_undone: bool = False,
    allow_out_of_range: bool = False,
) -> pa.Table:
    """Return the rows that changed within a closed window, with type, version and time of the change."""
    import pyarrow as pa

    query = select_changes(
        root,
        name,
        first_version,
        last_version,
        repo_id=repo_id,
        skip_undone=skip_undone,
        allow_out_of_range=allow_out_of_range,
    )
    with translate_errors(), lookup_connection() as database:
        rows: pa.Table = database.sql(query).to_arrow_table()
    at = rows.schema.get_field_index(COMMIT_TIMESTAMP)
    moments = rows.column(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return rows.set_column(at, COMMIT_TIMESTAMP, moments)


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
    rows = select_changes(
        root,
        name,
        first_version,
        last_version,
        columns=(column,),
        repo_id=repo_id,
        skip_undone=True,
        allow_out_of_range=allow_out_of_range,
    )
    query = f'SELECT DISTINCT "{column}" FROM ({rows}) WHERE "{column}" IS NOT NULL'
    with translate_errors(), lookup_connection() as database:
        return frozenset(owner for (owner,) in database.execute(query).fetchall())


def select_changes(
    root: str,
    name: str,
    first_version: int,
    last_version: int,
    *,
    columns: Sequence[str] | None = None,
    repo_id: str | None = None,
    skip_undone: bool = False,
    allow_out_of_range: bool = False,
) -> str:
    """Return the SQL query for the rows that changed within a closed window, and `CHANGE_COLUMNS`."""
    table = catalog.table(name)
    newest = newest_version(root, name)
    versions = existing_versions(
        name, newest, first_version, last_version, allow_out_of_range=allow_out_of_range
    )
    place = location(root, name)
    commits = _commits(place, table, versions, repo_id, skip_undone=skip_undone) if versions else ()
    selects = [_select_nothing(table), *(each for commit in commits for each in _selects(place, commit))]
    values = [contract_value(table.column(each)) for each in columns or table.column_names]
    names = ", ".join((*values, *CHANGE_COLUMNS))
    where = "" if repo_id is None else f' WHERE "{REPOSITORY}" = {sql_literal(repo_id)}'
    return f"SELECT {names} FROM ({' UNION ALL BY NAME '.join(selects)}){where}"


def require_complete(place: str, table: Table, versions: range) -> None:
    """Raise FeedLost if changes of a window were not recorded or have been deleted."""
    _commits(place, table, versions, None, skip_undone=False)


def records_changes(root: str, name: str, version: int) -> bool:
    """Return whether a version of a table records its changes."""
    try:
        return _is_recorded(replay_log(location(root, name), version).metadata)
    except UNREADABLE as problem:
        raise _missing_entry(name, version) from problem


def existing_versions(name: str, newest: int, first: int, last: int, *, allow_out_of_range: bool) -> range:
    """Return the existing versions of a closed window, given the newest version of the table."""
    if first < 0:
        raise UsageError(f"start version {first} is negative", "start at version 0 or later")
    if last < first - 1:
        raise UsageError(f"start version {first} is after end version {last}", "end at the start or later")
    if first > newest and not allow_out_of_range:
        raise FeedOutOfRange(
            f"start version {first} is after the newest version {newest} of {name}",
            "wait for a newer version, or set allow_out_of_range to get an empty feed",
        )
    return range(first, min(last, newest) + 1)


def _commits(
    place: str, table: Table, versions: range, repo_id: str | None, *, skip_undone: bool
) -> list[FeedCommit]:
    """Return the changes of the commits of a window; raise FeedLost if some are missing."""
    commits = list(_logged_commits(place, table, versions, repo_id, skip_undone=skip_undone))
    _require_files(place, table.name, commits)
    return commits


def _logged_commits(
    place: str, table: Table, versions: range, repo_id: str | None, *, skip_undone: bool
) -> Iterator[FeedCommit]:
    state = _state_before(place, table.name, versions.start)
    metadata, known, last_ms = state.metadata, dict(state.adds), -1
    for version in _kept_versions(place, table.name, versions) if skip_undone else versions:
        actions = _read_entry(place, table.name, version)
        metadata = _newest_metadata(actions) or metadata
        if not _is_recorded(metadata):
            raise FeedLost(f"{table.name} stopped recording changes at version {version}", READ_INSTEAD)
        # Delta's rule: a commit is later than the one before it, whatever the clock of the machine was.
        last_ms = max(_commit_ms(place, version, metadata), last_ms + 1)
        known |= {each.add.path: each.add for each in actions if each.add}
        files = [
            file
            for file in _changed_files(actions)
            if repo_id is None or _may_hold(table, metadata, known.get(file.logged_path), repo_id)
        ]
        is_mapped = metadata["configuration"].get(MAPPING, "none") != "none"
        yield FeedCommit(version, last_ms, tuple(files), is_mapped)


def _state_before(place: str, name: str, version: int) -> LogState:
    """Return the state before a version, which must have recorded its changes."""
    entry = _read_entry(place, name, version)
    try:
        state = replay_log(place, version - 1) if version else LogState({}, {}, {})
    except UNREADABLE:
        try:
            # Earlier entries are gone. The state after the version lacks only files that it has removed.
            state = replay_log(place, version)
        except UNREADABLE as problem:
            raise _missing_entry(name, version) from problem
    metadata = _newest_metadata(entry) or state.metadata
    if not _is_recorded(metadata):
        raise FeedLost(
            f"{name} did not record changes at version {version}",
            f"enable change_data_feed for the table; until then {READ_INSTEAD}",
        )
    return state


def _newest_metadata(actions: Sequence[Action]) -> dict[str, Any] | None:
    return next((each.meta_data for each in actions if each.meta_data), None)


def _is_recorded(metadata: Mapping[str, Any]) -> bool:
    return bool(metadata.get("configuration", {}).get(RECORDED) == "true")


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
    except UNREADABLE as problem:
        raise _missing_entry(name, version) from problem
    if info.get("operation") != "RESTORE":
        return None
    target = (info.get("operationParameters") or {}).get("version")
    return None if target is None else int(target)


def _read_entry(place: str, name: str, version: int) -> list[Action]:
    try:
        return read_actions(place, version)
    except UNREADABLE as problem:
        raise _missing_entry(name, version) from problem


def _missing_entry(name: str, version: int) -> FeedLost:
    return FeedLost(f"the log of {name} has no entry for version {version}", READ_INSTEAD)


def _commit_ms(place: str, version: int, metadata: Mapping[str, Any]) -> int:
    """Return the time of a commit in milliseconds: as recorded in its entry, or else that of the file."""
    if metadata["configuration"].get(TIMESTAMPS) == "true":
        recorded = read_commit_info(place, version).get("inCommitTimestamp")
        if recorded is not None:
            return int(recorded)
    return commit_time_ms(place, version)


def _changed_files(actions: Sequence[Action]) -> Iterator[ChangedFile]:
    """Yield the files that have the changes of a commit."""
    change_files = [each.cdc for each in actions if each.cdc]
    if change_files:
        yield from (ChangedFile(each.path, each.partition_values) for each in change_files)
        return
    before: dict[str, Remove] = {
        each.remove.path: each.remove for each in actions if each.remove and each.remove.data_change
    }
    after: dict[str, Add] = {each.add.path: each.add for each in actions if each.add and each.add.data_change}
    for path in dict.fromkeys((*before, *after)):
        sides = [side for side in (before.get(path), after.get(path)) if side is not None]
        old, new = sides[0].deletion_vector, sides[-1].deletion_vector
        partition = sides[-1].partition_values or {}
        if len(sides) == 1:
            yield ChangedFile(path, partition, "insert" if path in after else "delete", (new, new))
        elif old != new:
            yield ChangedFile(path, partition, "vector", (old, new))


def _may_hold(table: Table, metadata: dict[str, Any], add: Add | None, repo_id: str) -> bool:
    """Return whether a file may have rows of a repository, by its statistics."""
    if add is None or REPOSITORY not in table.column_names:
        return True
    (file,) = logged_files(table, LogState({}, metadata, {add.path: add}))
    return file.may_hold(REPOSITORY, [repo_id])


def _require_files(place: str, name: str, commits: Sequence[FeedCommit]) -> None:
    """Raise FeedLost if a file with changes, or a deletion vector of it, is missing."""
    files: dict[str, int] = {}
    for commit in commits:
        for file in commit.files:
            vectors = (vector_path(each) for each in file.vectors if each)
            paths = (path for path in (unquote(file.logged_path), *vectors) if path is not None)
            files |= {path: commit.version for path in paths if path not in files}
    for path in folder_of(place).damaged(list(files)):
        raise FeedLost(f"a file of version {files[path]} of {name} was vacuumed: {path}", READ_INSTEAD)


def _select_nothing(table: Table) -> str:
    """Return the SQL query that gives the feed its columns and their types."""
    columns = {**{column.name: duck_type(column) for column in table.columns}, **CHANGE_COLUMNS}
    values = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
    return f"SELECT {values} WHERE FALSE"


def _selects(place: str, commit: FeedCommit) -> Iterator[str]:
    """Yield the SQL queries for the rows that a commit changed."""
    if commit.is_mapped:
        raise StorageFailure(
            f"{place} uses columnMapping, which only Spark can read", "read its change feed with Spark"
        )
    # Files that are read alike are in one query.
    whole: dict[tuple[str | None, tuple[tuple[str, str | None], ...]], list[str]] = {}
    paths = folder_of(place).local_paths([unquote(file.logged_path) for file in commit.files])
    for file, path in zip(commit.files, paths, strict=True):
        partition = tuple(file.partition.items())
        old, new = file.vectors
        if file.change == "vector":
            was, now = read_vector(place, old), read_vector(place, new)
            for kind, positions in (("delete", now - was), ("insert", was - now)):
                if positions:
                    yield _select(rows_at([path], encode_bits(positions)), kind, partition, commit)
        elif new is not None:
            rows = rows_except([path], removed_bits(place, new))
            yield _select(rows, file.change, partition, commit)
        else:
            whole.setdefault((file.change, partition), []).append(path)
    for (change, partition), paths in whole.items():
        yield _select(parquet_relation(paths), change, partition, commit)


def _select(
    rows: str, change: str | None, partition: Sequence[tuple[str, str | None]], commit: FeedCommit
) -> str:
    """Return the SQL query for rows of files, with what the log has of them."""
    logged = [
        *((name, sql_literal(value)) for name, value in partition),
        *([] if change is None else [(CHANGE_TYPE, sql_literal(change))]),
        (COMMIT_VERSION, str(commit.version)),
        (COMMIT_TIMESTAMP, f"epoch_ms({commit.timestamp_ms})"),
    ]
    # Files written by Spark contain the partition columns, files written by us do not.
    stored = f"COLUMNS(lambda c: c NOT IN ({', '.join(sql_literal(name) for name, _ in logged)}))"
    values = ", ".join(f'{value} AS "{name}"' for name, value in logged)
    return f"SELECT {stored}, {values} FROM {rows}"
