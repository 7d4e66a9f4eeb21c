"""Reads without a JVM: rows of a table of the lake as Arrow, or its data files, in a fraction of a second.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"])
    light_files("lake", "cpg_nodes", 3)[0].partition     # {"node_kind": "CLASS"}, of version 3

Only Parquet files and deletion vectors are read this way; nothing is written. Tests: `tests/spark/test_build.py`,
`tests/unit/query/test_verify.py`, `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from msgspec import MsgspecError, Struct

from codeanatomy import catalog
from codeanatomy.delta.log.replay import VECTORS_FEATURE, replay_log, replay_vectors
from codeanatomy.delta.read.file_index import LoggedFile, logged_files
from codeanatomy.delta.store_policy import deltalake_options, is_local
from codeanatomy.errors import StorageFailure, TableMissing

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import fs
    from pyroaring import BitMap64

    from codeanatomy.delta.log.deletion_vectors import DeletionVector

# Reader features that change nothing about which rows a data file holds, and under which names.
HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
CHECKPOINTS = "v2Checkpoint"
# A column that says whether a row meets a condition.
MEETS = "_meets"

# In the path of a lake: deltalake panics at the first two, and reads the third as an escape.
UNREADABLE = re.compile(r"[\[\]]|%[0-9A-Fa-f]{2}")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


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
        wanted = [column for column in columns if column not in new]
        try:
            rows = _rows(table, location(root, name), wanted, where)
        except pa.ArrowException as problem:
            raise _unreadable(root, name, problem) from problem
    for column in new:
        rows = rows.append_column(column, pa.nulls(len(rows)))
    return rows.select(list(columns))


def light_files(root: str, name: str, version: int | None = None) -> tuple[LoggedFile, ...]:
    """The data files of a version of a table, else of the newest, for a reader of Parquet and vectors."""
    with _opened(root, name, version) as table:
        protocol = table.protocol()
        features = set(
            protocol.reader_features or (("columnMapping",) if protocol.min_reader_version > 1 else ())
        )
        if not features <= HARMLESS | {VECTORS_FEATURE}:
            raise StorageFailure(
                f"{name} uses {', '.join(sorted(features - HARMLESS - {VECTORS_FEATURE}))}",
                "read it with Spark, or build it without",
            )
        if _is_local(table):
            try:
                return logged_files(catalog.table(name), replay_log(_folder(table), int(table.version())))
            except FileNotFoundError:
                # Of a checkpoint that only deltalake reads.
                if CHECKPOINTS not in features:
                    raise
        return _unmeasured(table)


def _unmeasured(table: DeltaTable) -> tuple[LoggedFile, ...]:
    """The data files without what the log says of their columns."""
    if _has_vectors(table):
        raise OSError("its deletion vectors are read by Spark alone")
    added, keys = _added(table), table.metadata().partition_columns
    return tuple(
        LoggedFile(
            unquote(path),
            added["num_records"][row],
            {key: added[f"partition.{key}"][row] for key in keys},
            logged_path=path,
            size_bytes=added["size_bytes"][row],
        )
        for row, path in enumerate(added["path"])
    )


def logged_paths(root: str, name: str, version: int) -> tuple[str, ...]:
    """The files of a version of a table, data and deletion vectors, below the table's folder.

    Whatever it takes to read them; of a remote table the vectors are not known.
    """
    with _opened(root, name, version) as table:
        paths = tuple(map(unquote, _added(table)["path"]))
        vectors = _vectors(table) if _is_local(table) else {}
    if not vectors:
        return paths
    from codeanatomy.delta.log.deletion_vectors import vector_path

    files = {str(file) for vector in vectors.values() if (file := vector_path("", vector)) is not None}
    return (*paths, *sorted(files))


class TableFacts(Struct, frozen=True):
    """What the log says of a version of a table as a whole."""

    rows: int | None
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]
    # Data files, and what they take.
    files: int
    size_bytes: int


def table_facts(root: str, name: str, version: int) -> TableFacts:
    """Rows, files and protocol of a version of a table."""
    with _opened(root, name, version) as table:
        protocol, added = table.protocol(), _added(table)
        counts = added["num_records"] if _is_local(table) or not _has_vectors(table) else [None]
        removed = sum(each.cardinality for each in _vectors(table).values()) if _is_local(table) else 0
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return TableFacts(
        None if None in counts else sum(counts) - removed,
        protocol.min_reader_version,
        protocol.min_writer_version,
        tuple(sorted(features)),
        len(added["path"]),
        sum(added["size_bytes"]),
    )


def user_metadata_since(root: str, name: str, version: int) -> tuple[str | None, ...]:
    """What the commits after a version say of themselves, the newest first."""
    with _opened(root, name) as table:
        count = int(table.version()) - version
        return tuple(commit.get("userMetadata") for commit in table.history(count)) if count > 0 else ()


def newest_version_or_none(root: str, name: str) -> int | None:
    """The newest version of a table; none where it was never written."""
    try:
        return newest_version(root, name)
    except TableMissing:
        return None


def newest_version(root: str, name: str) -> int:
    """The newest version of a table."""
    with _opened(root, name) as table:
        return int(table.version())


def _added(table: DeltaTable) -> dict[str, list[Any]]:
    """What the log says of the data files, by column; every file is the same place in each."""
    rows = table.get_add_actions(flatten=True)
    return {name: list(rows.column(name).to_pylist()) for name in rows.schema.names}


def _vectors(table: DeltaTable) -> dict[str, DeletionVector]:
    """The deletion vectors of a version, by path as the log has it."""
    if not _has_vectors(table):
        return {}
    return replay_vectors(_folder(table), int(table.version()))


def _has_vectors(table: DeltaTable) -> bool:
    return VECTORS_FEATURE in (table.protocol().reader_features or ())


def _is_local(table: DeltaTable) -> bool:
    return urlsplit(table.table_uri).scheme == "file"


def _folder(table: DeltaTable) -> str:
    """The path of a local table, for those who open its files themselves."""
    if not _is_local(table):
        raise OSError("deletion vectors of a remote table are read by Spark alone")
    return unquote(urlsplit(table.table_uri).path).rstrip("/")


def _rows(table: DeltaTable, place: str, columns: list[str], where: pc.Expression | None) -> pa.Table:
    """Columns of the rows that meet a condition.

    One thread, and Arrow's own files: threads that call Python may abort the process when it ends.
    """
    if not _has_vectors(table):
        found = table.to_pyarrow_dataset(filesystem=_files_below(place))
        return found.to_table(columns=columns, filter=where, use_threads=False)
    import pyarrow as pa
    from pyarrow import dataset

    from codeanatomy.delta.log.deletion_vectors import read_vector

    place, vectors = _folder(table), _vectors(table)
    schema, form, files = (
        pa.schema(table.schema().to_arrow()),
        dataset.ParquetFileFormat(),
        _files_below(place),
    )
    fragments = {
        path: form.make_fragment(unquote(path), files, partition_expression=of_partition)
        for path, of_partition in _partitions(table)
    }
    whole = [each for path, each in fragments.items() if path not in vectors]
    of_whole = dataset.FileSystemDataset(whole, schema, form, files)
    parts = [of_whole.to_table(columns=columns, filter=where, use_threads=False)]
    # Which rows meet the condition is a column: without the others, positions would be lost.
    wanted = {name: dataset.field(name) for name in columns}
    wanted[MEETS] = dataset.scalar(value=True) if where is None else where
    for path, vector in vectors.items():
        of_file = dataset.FileSystemDataset([fragments[path]], schema, form, files)
        rows = of_file.to_table(columns=wanted, use_threads=False)
        parts.append(_kept(rows, read_vector(place, vector)).select(columns))
    return pa.concat_tables(parts)


def _partitions(table: DeltaTable) -> Iterator[tuple[str, pc.Expression]]:
    """The data files, and what holds for all rows of each."""
    from pyarrow import dataset

    added, keys = _added(table), table.metadata().partition_columns
    for row, path in enumerate(added["path"]):
        holds = dataset.scalar(value=True)
        for key in keys:
            value = added[f"partition.{key}"][row]
            holds &= dataset.field(key).is_null() if value is None else dataset.field(key) == value
        yield path, holds


def _kept(rows: pa.Table, removed: BitMap64) -> pa.Table:
    """The rows of a file that meet the condition and are not removed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.arange(0, len(rows))
    gone = pc.is_in(numbers, value_set=pa.array(list(removed), numbers.type))
    return rows.filter(pc.and_not(rows[MEETS], gone))


def _files_below(place: str) -> fs.FileSystem | None:
    """The files of a local table; those of others are deltalake's to open."""
    from pyarrow import fs

    path = Path(place).absolute()
    return fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()) if path.is_dir() else None


def one_line(problem: Exception) -> str:
    """What the library says, in one line and without colours: the cause is at its end."""
    return " ".join(COLOURS.sub("", str(problem)).split())


@contextmanager
def _opened(root: str, name: str, version: int | None = None) -> Iterator[DeltaTable]:
    """A table; what goes wrong with it is an error of ours."""
    place = location(root, name)
    try:
        yield DeltaTable(place, version=version, storage_options=deltalake_options(place))
    except (DeltaError, OSError, ValueError, MsgspecError) as problem:
        # Asked afterwards: most tables are there.
        raise _missing(root, name) or _unreadable(root, name, problem) from problem


def _missing(root: str, name: str) -> StorageFailure | TableMissing | None:
    """What is wrong with a table that is not there; what is in its place may say more than its absence."""
    try:
        place = location(root, name)
        if DeltaTable.is_deltatable(place, storage_options=deltalake_options(place)):
            return None
    except (DeltaError, OSError, ValueError) as problem:
        return _unreadable(root, name, problem)
    return TableMissing(f"{name} was never written at {location(root, name)}", "name a lake that was built")


def _unreadable(root: str, name: str, problem: Exception) -> StorageFailure:
    odd = UNREADABLE.search(root) if is_local(root) else None
    hint = "its log or a file of it is damaged: restore it from a copy, or build into a new lake"
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be read: {one_line(problem)}",
        hint if odd is None else f"give the lake's folder another name, without {odd[0]}",
    )
