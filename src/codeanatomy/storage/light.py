"""Reads without a JVM: rows of a table of the lake as Arrow, or its data files, in a fraction of a second.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"])
    light_files("lake", "cpg_nodes", 3)[0].partition     # {"node_kind": "CLASS"}, of version 3

Only what any Delta reader can read is read this way; nothing is written. Tests: `tests/test_build.py`,
`tests/test_verify.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.errors import StorageFailure, TableMissing

# Reader features that change nothing about which rows a data file holds, and under which names.
HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


class LoggedFile(Struct, frozen=True):
    """A Parquet file of a version of a table, as the log has it."""

    # Below the table's folder.
    path: str
    rows: int | None
    partition: dict[str, str | None]


def location(root: str, name: str) -> str:
    """The path or URI of a table of the lake."""
    return f"{root.rstrip('/')}/{catalog.table(name).path}"


def light_table(root: str, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
    """Columns of the newest version of a table, of the rows that meet a condition."""
    with _opened(root, name) as table:
        # One thread: those that read files through deltalake may abort the process when it ends.
        return table.to_pyarrow_dataset().to_table(columns=list(columns), filter=where, use_threads=False)


def light_files(root: str, name: str, version: int) -> tuple[LoggedFile, ...]:
    """The data files of a version of a table, for a reader that knows only Parquet."""
    with _opened(root, name, version) as table:
        protocol = table.protocol()
        features = set(
            protocol.reader_features or (("columnMapping",) if protocol.min_reader_version > 1 else ())
        )
        if not features <= HARMLESS:
            raise StorageFailure(
                f"{name} uses {', '.join(sorted(features - HARMLESS))}",
                "read it with Spark, or build it without",
            )
        keys = table.metadata().partition_columns
        rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return tuple(
        LoggedFile(unquote(row["path"]), row["num_records"], {key: row[f"partition.{key}"] for key in keys})
        for row in rows
    )


def newest_version(root: str, name: str) -> int:
    """The newest version of a table."""
    with _opened(root, name) as table:
        return int(table.version())


@contextmanager
def _opened(root: str, name: str, version: int | None = None) -> Iterator[DeltaTable]:
    """A table; what goes wrong with it is an error of ours."""
    place = location(root, name)
    try:
        if not DeltaTable.is_deltatable(place):
            raise TableMissing(f"{name} was never written at {place}", "name a lake that was built")
        yield DeltaTable(place, version=version)
    except (DeltaError, OSError, ValueError, pa.ArrowException) as problem:
        raise StorageFailure(
            f"{name} at {place} cannot be read: {problem}", "check the path, and the table with Spark"
        ) from problem
