"""A table brought back to what it was, without rewriting a row and mostly without a JVM.

    restore_table("lake", "cpg_nodes", 4, Commit("run-8", sequence=-1))     # 7: the rows of version 4 again
    restore_table("lake", "cpg_nodes", None, Commit("run-8", sequence=-1))  # 7: no rows
    bring_back(store, "cpg_nodes", 4, Commit("run-8", sequence=-1))         # by Spark, where only that can

The log gets a commit of its own, so what was undone stays in the history. Tests: `tests/test_restore.py`.
"""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy.errors import StorageFailure
from codeanatomy.storage.contract import quoted
from codeanatomy.storage.deltalog import ENGINE_ERRORS, cause_of
from codeanatomy.storage.light import location, plain
from codeanatomy.storage.session import isolated
from codeanatomy.storage.stamps import Commit, stamp
from codeanatomy.storage.store import Store

# What the library says of a table that only Spark can write, such as one with row tracking.
NOT_OURS = "Unsupported table features"
OPERATION = "restore"


def bring_back(store: Store, name: str, version: int | None, commit: Commit) -> int:
    """The same for every table, by Spark where it has features that the library does not know."""
    try:
        return restore_table(store.root, name, version, commit)
    except StorageFailure as problem:
        if NOT_OURS not in problem.message:
            raise
    address = f"delta.{quoted(store.location(name))}"
    settings = {"spark.databricks.delta.commitInfo.userMetadata": stamp(commit, OPERATION)}
    wanted = (
        f"DELETE FROM {address}" if version is None else f"RESTORE TABLE {address} TO VERSION AS OF {version}"
    )
    try:
        isolated(store.spark, settings).sql(wanted)
    except ENGINE_ERRORS as problem:
        raise _failed(store.root, name, version, cause_of(problem)) from problem
    return store.log(name).snapshot().version


def restore_table(root: str, name: str, version: int | None, commit: Commit) -> int:
    """Give a table the rows of an older version, or none, and return the version that has them."""
    place = location(root, name)
    stamped = CommitProperties(custom_metadata={"userMetadata": stamp(commit, OPERATION)})
    try:
        table = DeltaTable(place)
        if version is None:
            table.delete(commit_properties=stamped)
        else:
            table.restore(version, commit_properties=stamped)
        return int(table.version())
    except (DeltaError, OSError) as problem:
        raise _failed(root, name, version, plain(problem)) from problem


def _failed(root: str, name: str, version: int | None, why: str) -> StorageFailure:
    wanted = "no rows" if version is None else f"version {version}"
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be brought back to {wanted}: {why}",
        "a dead run has written to it; check that its files are there and that the lake can be written",
    )
