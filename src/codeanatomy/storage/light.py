"""Reads without a JVM: a table of the lake as an Arrow dataset, in a fraction of a second.

    rows = light_dataset("lake", "run_manifest").to_table(columns=["run_id", "repo_id"])

Only what any Delta reader can read is read this way; nothing is written. Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy import catalog
from codeanatomy.errors import StorageFailure, TableMissing


def light_dataset(root: str, name: str, version: int | None = None) -> ds.Dataset:
    """The newest version of a table, or a pinned one."""
    location = f"{root.rstrip('/')}/{catalog.table(name).path}"
    try:
        if not DeltaTable.is_deltatable(location):
            raise TableMissing(f"{name} was never written at {location}", "name a lake that was built")
        return DeltaTable(location, version=version).to_pyarrow_dataset()
    except (DeltaError, OSError, ValueError) as problem:
        raise StorageFailure(f"{name} at {location} cannot be read: {problem}", "check the path") from problem
