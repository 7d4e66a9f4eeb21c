"""Reads without a JVM: rows of a table of the lake as Arrow, or its data files, in a fraction of a second.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"])
    light_files("lake", "cpg_nodes", 3)[0].partition     # {"node_kind": "CLASS"}, of version 3

Only what any Delta reader can read is read this way; nothing is written. Tests: `tests/test_build.py`,
`tests/test_verify.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.errors import StorageFailure, TableMissing

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import fs

# Reader features that change nothing about which rows a data file holds, and under which names.
HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class LoggedFile(Struct, frozen=True):
    """A Parquet file of a version of a table, as the log has it."""

    # Below the table's folder.
    path: str
    rows: int | None
    partition: dict[str, str | None]
    # The least and the greatest value of columns of text that the log has them of; cut ones are bounds still.
    bounds: dict[str, tuple[str, str]] = {}

    def may_hold(self, column: str, values: Collection[str]) -> bool:
        """Whether one of the values may be in the column, by what the log says."""
        if column in self.partition:
            return self.partition[column] in values
        if column not in self.bounds:
            return True
        least, greatest = self.bounds[column]
        return any(least <= value <= greatest for value in values)


def location(root: str, name: str) -> str:
    """The path or URI of a table of the lake."""
    return f"{root.rstrip('/')}/{catalog.table(name).path}"


def light_table(
    root: str,
    name: str,
    columns: Sequence[str],
    where: pc.Expression | None = None,
    version: int | None = None,
) -> pa.Table:
    """Columns of a version of a table, else of the newest, of the rows that meet a condition.

    A column that the catalogue has and the stored table has not is null.
    """
    # Here, since it takes as long as a whole answer that does without.
    import pyarrow as pa

    with _opened(root, name, version) as table:
        stored = {field.name for field in table.schema().fields}
        new = [catalog.table(name).column(column).name for column in columns if column not in stored]
        # One thread, and Arrow's own files: threads that call Python may abort the process when it ends.
        try:
            rows = table.to_pyarrow_dataset(filesystem=_files_below(location(root, name))).to_table(
                columns=[column for column in columns if column not in new], filter=where, use_threads=False
            )
        except pa.ArrowException as problem:
            raise _unreadable(root, name, problem) from problem
    for column in new:
        rows = rows.append_column(column, pa.nulls(len(rows)))
    return rows.select(list(columns))


def light_files(root: str, name: str, version: int | None = None) -> tuple[LoggedFile, ...]:
    """The data files of a version of a table, else of the newest, for a reader that knows only Parquet."""
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
        added = _added(table)
    texts = [field.name for field in catalog.table(name).columns if field.type == "string"]
    known = [each for each in texts if f"min.{each}" in added and f"max.{each}" in added]
    return tuple(
        LoggedFile(
            unquote(path),
            added["num_records"][row],
            {key: added[f"partition.{key}"][row] for key in keys},
            {
                each: (added[f"min.{each}"][row], added[f"max.{each}"][row])
                for each in known
                if added[f"min.{each}"][row] is not None and added[f"max.{each}"][row] is not None
            },
        )
        for row, path in enumerate(added["path"])
    )


def logged_paths(root: str, name: str, version: int) -> tuple[str, ...]:
    """The data files of a version of a table, whatever it takes to read them, below the table's folder."""
    with _opened(root, name, version) as table:
        return tuple(map(unquote, _added(table)["path"]))


class TableFacts(Struct, frozen=True):
    """What the log says of a version of a table as a whole."""

    rows: int | None
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]


def table_facts(root: str, name: str, version: int) -> TableFacts:
    """Rows and protocol of a version of a table."""
    with _opened(root, name, version) as table:
        protocol = table.protocol()
        counts = _added(table)["num_records"]
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return TableFacts(
        None if None in counts else sum(counts),
        protocol.min_reader_version,
        protocol.min_writer_version,
        tuple(sorted(features)),
    )


def user_metadata_since(root: str, name: str, version: int) -> tuple[str | None, ...]:
    """What the commits after a version say of themselves, the newest first."""
    with _opened(root, name) as table:
        count = int(table.version()) - version
        return tuple(commit.get("userMetadata") for commit in table.history(count)) if count > 0 else ()


def newest_version(root: str, name: str) -> int:
    """The newest version of a table."""
    with _opened(root, name) as table:
        return int(table.version())


def _added(table: DeltaTable) -> dict[str, list[Any]]:
    """What the log says of the data files, by column; every file is the same place in each."""
    rows = table.get_add_actions(flatten=True)
    return {name: list(rows.column(name).to_pylist()) for name in rows.schema.names}


def _files_below(place: str) -> fs.FileSystem | None:
    """The files of a local table; those of others are deltalake's to open."""
    from pyarrow import fs

    path = Path(place).absolute()
    return fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()) if path.is_dir() else None


def plain(problem: Exception) -> str:
    """What the library says, in one line and without colours: the cause is at its end."""
    return " ".join(COLOURS.sub("", str(problem)).split())


@contextmanager
def _opened(root: str, name: str, version: int | None = None) -> Iterator[DeltaTable]:
    """A table; what goes wrong with it is an error of ours."""
    place = location(root, name)
    try:
        yield DeltaTable(place, version=version)
    except (DeltaError, OSError, ValueError) as problem:
        # Asked afterwards: most tables are there.
        raise _missing(root, name) or _unreadable(root, name, problem) from problem


def _missing(root: str, name: str) -> StorageFailure | TableMissing | None:
    """What is wrong with a table that is not there; what is in its place may say more than its absence."""
    try:
        if DeltaTable.is_deltatable(location(root, name)):
            return None
    except (DeltaError, OSError, ValueError) as problem:
        return _unreadable(root, name, problem)
    return TableMissing(f"{name} was never written at {location(root, name)}", "name a lake that was built")


def _unreadable(root: str, name: str, problem: Exception) -> StorageFailure:
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be read: {plain(problem)}",
        "its log or a file of it is damaged: restore it from a copy, or build into a new lake",
    )
