"""Reads without a JVM: rows of a table of the lake as Arrow, in a fraction of a second.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"])

Only what any Delta reader can read is read this way; nothing is written. Tests: `tests/test_build.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from codeanatomy import catalog
from codeanatomy.errors import StorageFailure, TableMissing


def light_table(root: str, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
    """Columns of the newest version of a table, of the rows that meet a condition."""
    location = f"{root.rstrip('/')}/{catalog.table(name).path}"
    try:
        if not DeltaTable.is_deltatable(location):
            raise TableMissing(f"{name} was never written at {location}", "name a lake that was built")
        rows = DeltaTable(location).to_pyarrow_dataset()
        # One thread: those that read files through deltalake may abort the process when it ends.
        return rows.to_table(columns=list(columns), filter=where, use_threads=False)
    except (DeltaError, OSError, ValueError, pa.ArrowException) as problem:
        raise StorageFailure(
            f"{name} at {location} cannot be read: {problem}", "check the path, and the table with Spark"
        ) from problem
