"""A table brought back to what it was, without rewriting a row and mostly without a JVM.

    restore_table("lake", "cpg_nodes", 4, Commit("run-8", sequence=-1))     # 7: the rows of version 4 again
    restore_table("lake", "cpg_nodes", None, Commit("run-8", sequence=-1))  # 7: no rows
    bring_back("lake", "cpg_nodes", 4, Commit("run-8"), lambda: store)        # by Spark, where only that can

The log gets a commit of its own, so what was undone stays in the history. Rows that left by a deletion vector
come back with it, since the log tells of both. Tests: `tests/unit/delta/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.log.deletion_vectors import vector_path
from codeanatomy.delta.log.replay import VECTORS_FEATURE, replay_vectors
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.light import location, one_line
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import deltalake_options, is_local
from codeanatomy.errors import NeedsSpark, StorageFailure
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.session import isolated

# What the library says of a table that only Spark can write, such as one with row tracking.
NOT_OURS = "Unsupported table features"
OPERATION = "restore"


def restore_with_fallback(root: str, name: str, version: int | None, commit: Commit, opened: Callable[[], Store]) -> int:
    """The same for every table, by Spark where it has features that the library does not know."""
    try:
        return restore_table(root, name, version, commit)
    except NeedsSpark:
        store = opened()
    address = f"delta.{quote_identifier(store.location(name))}"
    settings = {"spark.databricks.delta.commitInfo.userMetadata": encode_stamp(commit, OPERATION)}
    wanted = (
        f"DELETE FROM {address}" if version is None else f"RESTORE TABLE {address} TO VERSION AS OF {version}"
    )
    try:
        isolated(store.spark, settings).sql(wanted)
    except ENGINE_ERRORS as problem:
        raise _failed(store.root, name, version, cause_of(problem)) from problem
    return store.log(name).snapshot().version


def restore_table(root: str, name: str, version: int | None, commit: Commit) -> int:
    """Give a table the rows of an older version, or none, and return the version that has them.

    A table that only Spark can write is NeedsSpark.
    """
    place = location(root, name)
    stamped = CommitProperties(custom_metadata={"userMetadata": encode_stamp(commit, OPERATION)})
    try:
        table = DeltaTable(place, storage_options=deltalake_options(place))
        if version is None:
            table.delete(commit_properties=stamped)
        else:
            if VECTORS_FEATURE in (table.protocol().reader_features or ()) and is_local(root):
                _require_vectors(location(local_path(root), name), version)
            table.restore(version, commit_properties=stamped)
        return int(table.version())
    except (DeltaError, OSError) as problem:
        failed = _failed(root, name, version, one_line(problem))
        if NOT_OURS in failed.message:
            raise NeedsSpark(failed.message, "build with a Spark session") from problem
        raise failed from problem


def _require_vectors(place: str, version: int) -> None:
    """Of data files the library sees to it that they are there."""
    for vector in replay_vectors(place, version).values():
        file = vector_path(place, vector)
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"{file} is gone")


def _failed(root: str, name: str, version: int | None, why: str) -> StorageFailure:
    wanted = "no rows" if version is None else f"version {version}"
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be brought back to {wanted}: {why}",
        "a dead run has written to it; check that its files are there and that the lake can be written",
    )
