"""Restore a table to an earlier version, without rewriting rows and mostly without a JVM.

    restore_table("lake", "cpg_nodes", 4, Commit("run-8", sequence=-1))     # 7: the rows of version 4 again
    restore_table("lake", "cpg_nodes", None, Commit("run-8", sequence=-1))  # 7: no rows
    restore_with_fallback("lake", "cpg_nodes", 4, Commit("run-8"), lambda: store)    # with Spark if needed

A restore is a commit of its own, so the undone versions stay in the history. Rows deleted by a deletion
vector come back too, since the log of the earlier version has the file without it. If the earlier version has
deletion vectors and the table has lost that feature (`codeanatomy maintain --readers all`), a commit before
enables it again.

Tests: `tests/unit/delta/test_restore.py`, `tests/unit/maintain/test_readers.py`,
`tests/spark/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.log.deletion_vectors import vector_path
from codeanatomy.delta.log.replay import VECTORS_FEATURE, replay_vectors
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import location, one_line
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import deltalake_options, is_local
from codeanatomy.delta.write.table_features import enable_vectors
from codeanatomy.errors import NeedsSpark, StorageFailure
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.session import clone_session

# deltalake's error for a table that only Spark can write, such as one with row tracking.
UNSUPPORTED = "Unsupported table features"
OPERATION = "restore"
# Of the commit that rolls back what an unfinished run has written: before all commits of a run.
ROLLBACK_SEQUENCE = -1


def restore_with_fallback(
    root: str, name: str, version: int | None, commit: Commit, open_store: Callable[[], Store]
) -> int:
    """Restore a table as `restore_table` does, with Spark if deltalake does not support its features."""
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
        raise _failed(store.root, name, version, cause_of(problem)) from problem
    return store.log(name).snapshot().version


def restore_table(root: str, name: str, version: int | None, commit: Commit) -> int:
    """Restore a table to an older version (None: to no rows) and return the new version.

    Raise NeedsSpark if only Spark can write the table.
    """
    place = location(root, name)
    properties = CommitProperties(custom_metadata={"userMetadata": encode_stamp(commit, OPERATION)})
    try:
        table = DeltaTable(place, storage_options=deltalake_options(place))
        if version is None:
            table.delete(commit_properties=properties)
        else:
            if is_local(root) and _has_vectors(DeltaTable(place, version=version)):
                folder = location(local_path(root), name)
                _require_vectors(folder, version)
                if not _has_vectors(table):
                    # deltalake does not raise the protocol.
                    enable_vectors(catalog.table(name), folder, commit)
                    table.update_incremental()
            table.restore(version, commit_properties=properties)
        return int(table.version())
    except (DeltaError, OSError) as problem:
        failed = _failed(root, name, version, one_line(problem))
        if UNSUPPORTED in failed.message:
            raise NeedsSpark(failed.message, "restore it with a Spark session") from problem
        raise failed from problem


def _require_vectors(place: str, version: int) -> None:
    """Raise FileNotFoundError if a deletion vector is gone; deltalake checks only the data files."""
    for vector in replay_vectors(place, version).values():
        file = vector_path(place, vector)
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"{file} is gone")


def _has_vectors(table: DeltaTable) -> bool:
    return VECTORS_FEATURE in (table.protocol().reader_features or ())


def _failed(root: str, name: str, version: int | None, why: str) -> StorageFailure:
    target = "no rows" if version is None else f"version {version}"
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be restored to {target}: {why}",
        "check that its data files exist and that the lake is writable, then run the command again",
    )
