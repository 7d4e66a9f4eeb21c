"""Restore a table to an earlier version, without rewriting rows and mostly without a JVM.

    restore_table("lake", "cpg_nodes", 4, Commit("run-8", sequence=-1))     # 7: the rows of version 4 again
    restore_table("lake", "cpg_nodes", None, Commit("run-8", sequence=-1))  # 7: no rows
    restore_with_fallback("lake", "cpg_nodes", 4, Commit("run-8"), lambda: store)    # with Spark if needed
    restart_table(tables, "cpg_nodes", Commit("run-8"), 9)                  # 10: no rows, a new log

A restore is a commit of its own, so the undone versions stay in the history: it adds the files of the earlier
version again and removes the others. Rows deleted by a deletion vector come back too, since the log of the
earlier version has the file without it. The columns and properties are those of the earlier version. If it
has deletion vectors and the table has lost that feature (`codeanatomy maintain --readers all`), the commit
enables it again; features are never taken away.

Tests: `tests/unit/delta/test_restore.py`, `tests/unit/maintain/test_readers.py`,
`tests/spark/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from msgspec import structs

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import vector_path
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.protocol import IMPLIED
from codeanatomy.delta.log.replay import LOG, Add, LogState, list_log, newest_logged, replay_log
from codeanatomy.delta.log.versions import TableVersion
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.commit import PendingCommit, run_commit
from codeanatomy.delta.write.evolve import new_table
from codeanatomy.delta.write.log_writer import LogWriter, require_simple
from codeanatomy.errors import CommitConflict, NeedsSpark, StorageFailure
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.session import clone_session

OPERATION = "restore"
# Of the commit that rolls back what an unfinished run has written: before all commits of a run.
ROLLBACK_SEQUENCE = -1


def restore_with_fallback(
    root: str, name: str, version: int | None, commit: Commit, open_store: Callable[[], Store]
) -> int:
    """Restore a table as `restore_table` does, with Spark if only Spark can write the table."""
    try:
        return restore_table(root, name, version, commit)
    except NeedsSpark:
        store = open_store()
    address = f"delta.{quote_identifier(store.location(name))}"
    settings = {"spark.databricks.delta.commitInfo.userMetadata": encode_stamp(commit, OPERATION)}
    statement = (
        f"DELETE FROM {address}" if version is None else f"RESTORE TABLE {address} TO VERSION AS OF {version}"
    )
    try:
        clone_session(store.spark, settings).sql(statement)
    except ENGINE_ERRORS as problem:
        raise _failed(store.location(name), name, version, cause_of(problem)) from problem
    return newest_logged(store.location(name))


def restore_table(root: str, name: str, version: int | None, commit: Commit) -> int:
    """Restore a table to an older version (None: to no rows) and return the new version.

    Raise NeedsSpark if only Spark can write the table.
    """
    tables, table = LakeTables(root), catalog.table(name)
    change = PendingCommit(tables, table, OPERATION, commit, RestoreWriter(version), is_repeatable=True)
    return run_commit(change).version


def restart_table(tables: LakeTables, name: str, commit: Commit, after: int) -> int:
    """Begin a table anew whose log cannot be read, at the version after `after`, and return that version.

    It has no rows. Earlier versions stay unreadable, and no number is used twice: a run that pinned one never
    shows other rows. Readers begin at the checkpoint of the new version.
    """
    table, place = tables.table(name), tables.location(name)
    version = max(list_log(place).newest, after) + 1
    created = entries.create_actions(new_table(tables, table))
    info = entries.commit_info_action(encode_stamp(commit, OPERATION), (), {}, removing=True)
    if not entries.write_entry(place, version, [info, *created], interval=version + 1):
        raise CommitConflict(
            f"another run has made version {version} of {name}", "run the command again when it has ended"
        )
    entries.write_first_checkpoint(place, version, created)
    return version


def delete_entries(root: str, name: str, after: int) -> None:
    """Delete the log entries and checkpoints after a version, which an unfinished run has left unreadable."""
    place = location(root, name)
    listing = list_log(place)
    files = [file for number, file in listing.entries.items() if number > after]
    files += [file for number, parts in listing.checkpoints.items() if number > after for file in parts]
    folder_of(place).delete(f"{LOG}/{file.name}" for file in files)


class RestoreWriter(LogWriter):
    """Make the files of an earlier version, or no files, those of the table."""

    # A table may be restored several times by the same run.
    is_recorded = False

    def __init__(self, version: int | None) -> None:
        self._version = version
        self.parameters = {} if version is None else {"version": str(version)}
        self.delta_operation = "DELETE" if version is None else "RESTORE"

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        """Write the version with the actions in which the two versions differ."""
        if current is None:
            raise self._refused(change, "there is no table")
        require_simple(change.table, current)
        before, after = current.state, self._earlier(change, current)
        gone = [add for path, add in before.adds.items() if not _has(after, path, add)]
        back = [add for path, add in after.adds.items() if not _has(before, path, add)]
        files = {file.logged_path: file for file in current.files}
        actions = [
            *self._metadata(current, after),
            *(entries.remove_action(files[add.path]) for add in gone),
            *({"add": structs.replace(add, data_change=True)} for add in back),
        ]
        removal = {"numRemovedFiles": len(gone), "numRestoredFiles": len(back)}
        return self.write_entry(change, current, actions, removal=removal)

    def _earlier(self, change: PendingCommit, current: TableVersion) -> LogState:
        """Return the state to restore, after a check that its files exist."""
        if self._version is None:
            return structs.replace(current.state, adds={})
        if not 0 <= self._version <= current.info.version:
            raise self._refused(change, f"its versions are 0 to {current.info.version}")
        try:
            state = replay_log(change.location, self._version)
        except OSError as problem:
            raise self._refused(change, str(problem)) from problem
        back = [add for path, add in state.adds.items() if not _has(current.state, path, add)]
        vectors = {vector_path(add.deletion_vector) for add in back if add.deletion_vector is not None}
        files = [unquote(add.path) for add in back] + sorted(path for path in vectors if path is not None)
        for file in folder_of(change.location).damaged(files):
            raise self._refused(change, f"{file} is gone")
        return state

    def _metadata(self, current: TableVersion, after: LogState) -> list[dict[str, Any]]:
        """Return the actions that bring back columns, properties and the feature of deletion vectors."""
        actions: list[dict[str, Any]] = []
        if after.has_vectors and not current.state.has_vectors:
            info = current.info
            features = info.writer_features or IMPLIED[info.min_writer_version]
            actions.append({"protocol": entries.vectors_protocol(features)})
        if after.metadata != current.state.metadata:
            actions.append({"metaData": after.metadata})
        return actions

    def _refused(self, change: PendingCommit, why: str) -> StorageFailure:
        return _failed(change.location, change.table.name, self._version, why)


def _has(state: LogState, path: str, add: Add) -> bool:
    """Return whether a state has a data file with the same deletion vector."""
    stored = state.adds.get(path)
    return stored is not None and stored.deletion_vector == add.deletion_vector


def _failed(location: str, name: str, version: int | None, why: str) -> StorageFailure:
    target = "no rows" if version is None else f"version {version}"
    return StorageFailure(
        f"{name} at {location} cannot be restored to {target}: {why}",
        "check that its data files exist and that the lake is writable, then run the command again",
    )
