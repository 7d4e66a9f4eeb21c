"""A table brought back to what it was, without a JVM and without rewriting a row.

    restore_table("lake", "cpg_nodes", 4, Commit("run-8", sequence=-1))     # 7: the rows of version 4 again
    restore_table("lake", "cpg_nodes", None, Commit("run-8", sequence=-1))  # 7: no rows

The log gets a commit of its own, so what was undone stays in the history. Tests: `tests/test_restore.py`.
"""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy.errors import StorageFailure
from codeanatomy.storage.light import location
from codeanatomy.storage.stamps import Commit, stamp


def restore_table(root: str, name: str, version: int | None, commit: Commit) -> int:
    """Give a table the rows of an older version, or none, and return the version that has them."""
    place = location(root, name)
    stamped = CommitProperties(custom_metadata={"userMetadata": stamp(commit, "restore")})
    try:
        table = DeltaTable(place)
        if version is None:
            table.delete(commit_properties=stamped)
        else:
            table.restore(version, commit_properties=stamped)
        return int(table.version())
    except (DeltaError, OSError) as problem:
        wanted = "no rows" if version is None else f"version {version}"
        raise StorageFailure(
            f"{name} at {place} cannot be brought back to {wanted}: {problem}",
            "a dead run has written to it; check that its files are there and that the lake can be written",
        ) from problem
