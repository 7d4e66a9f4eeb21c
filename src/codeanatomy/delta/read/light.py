"""Read table versions without a JVM: rows as Arrow, data files, and facts from the log, with delta-rs.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"])
    light_files("lake", "cpg_nodes", 3)[0].partition     # {"node_kind": "CLASS"}, of version 3

The data files of a local table are listed from its log alone: importing deltalake and opening three tables
takes longer than the queries of an answer. deltalake is imported by the functions that need it.

Tables with other reader features than deletion vectors are refused: Spark has to read them. Tests:
`tests/spark/test_build.py`, `tests/unit/query/test_verify.py`, `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec import MsgspecError, Struct

from codeanatomy import catalog
from codeanatomy.delta.log.replay import VECTORS_FEATURE, LogState, newest_logged, replay_log, replay_vectors
from codeanatomy.delta.read.file_index import LoggedFile, logged_files
from codeanatomy.delta.store_policy import deltalake_options, is_local, path_of
from codeanatomy.errors import CodeAnatomyError, StorageFailure, TableMissing

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable
    from pyarrow import fs
    from pyroaring import BitMap64

    from codeanatomy.delta.log.deletion_vectors import DeletionVector

# Reader features that affect neither the rows of a data file nor the names of its columns.
HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
CHECKPOINTS = "v2Checkpoint"
# Temporary boolean column: whether a row matches the condition.
MATCHES = "_matches"

# Unsupported in the path of a lake: deltalake panics at brackets, and decodes percent escapes.
UNREADABLE = re.compile(r"[\[\]]|%[0-9A-Fa-f]{2}")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def location(root: str, name: str) -> str:
    """Return the path or URI of a table of the lake."""
    return f"{root.rstrip('/')}/{catalog.table(name).path}"


def light_table(
    root: str,
    name: str,
    columns: Sequence[str],
    where: pc.Expression | None = None,
    version: int | None = None,
) -> pa.Table:
    """Read columns of a version (default: the newest) of a table, filtered by a condition.

    A column of the catalogue that the stored table lacks is null.
    """
    # Imported here: the import takes as long as a whole query that does without PyArrow.
    import pyarrow as pa

    with _open_table(root, name, version) as table:
        stored = {field.name for field in table.schema().fields}
        missing = [catalog.table(name).column(column).name for column in columns if column not in stored]
        present = [column for column in columns if column not in missing]
        try:
            rows = _read_rows(table, location(root, name), present, where)
        except pa.ArrowException as problem:
            raise _unreadable(root, name, problem) from problem
    for column in missing:
        rows = rows.append_column(column, pa.nulls(len(rows)))
    return rows.select(list(columns))


def light_files(root: str, name: str, version: int | None = None) -> tuple[LoggedFile, ...]:
    """Return the data files of a version (default: the newest), for a reader of Parquet and deletion vectors.

    Raise StorageFailure if the table has other reader features.
    """
    state = _replayed(root, name, version)
    if state is not None:
        _refuse_features(name, state.protocol.get("readerFeatures"), state.protocol["minReaderVersion"])
        return logged_files(catalog.table(name), state)
    with _open_table(root, name, version) as table:
        protocol = table.protocol()
        features = _refuse_features(name, protocol.reader_features, protocol.min_reader_version)
        # Entries before a v2 checkpoint, which only deltalake reads, may be gone.
        if _is_local(table) and CHECKPOINTS not in features:
            return logged_files(catalog.table(name), replay_log(_folder(table), int(table.version())))
        return _files_without_stats(table)


def _replayed(root: str, name: str, version: int | None) -> LogState | None:
    """Return the state of a local table from its log; None if deltalake has to read it, or to explain it."""
    if not is_local(root):
        return None
    folder = path_of(location(root, name))
    try:
        state = replay_log(folder, newest_logged(folder) if version is None else version)
    except (OSError, ValueError, MsgspecError, CodeAnatomyError):
        return None
    return state if "minReaderVersion" in state.protocol and state.metadata else None


def _refuse_features(name: str, reader_features: Iterable[str] | None, reader_version: int) -> set[str]:
    """Return the reader features of a table; raise StorageFailure for one that this reader lacks."""
    implied = ("columnMapping",) if reader_version > 1 else ()
    features = set(implied if reader_features is None else reader_features)
    lacking = features - HARMLESS - {VECTORS_FEATURE}
    if lacking:
        raise StorageFailure(
            f"{name} uses {', '.join(sorted(lacking))}, which only Spark can read",
            "read the table with Spark, or build it without these features",
        )
    return features


def _files_without_stats(table: DeltaTable) -> tuple[LoggedFile, ...]:
    """Return the data files without the statistics of their columns."""
    if _has_vectors(table):
        raise OSError("only Spark can read its deletion vectors")
    added, keys = _add_actions(table), table.metadata().partition_columns
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
    """Return the data files and deletion vectors of a version, relative to the table's folder.

    Works for tables with any reader feature; the vectors of a remote table are not listed.
    """
    with _open_table(root, name, version) as table:
        paths = tuple(map(unquote, _add_actions(table)["path"]))
        vectors = _vectors(table) if _is_local(table) else {}
    if not vectors:
        return paths
    from codeanatomy.delta.log.deletion_vectors import vector_path

    files = {str(file) for vector in vectors.values() if (file := vector_path("", vector)) is not None}
    return (*paths, *sorted(files))


class TableFacts(Struct, frozen=True):
    """Row count, protocol and size of a table version."""

    # None if the log has no row counts.
    rows: int | None
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]
    # Number of data files, and their total size.
    files: int
    size_bytes: int


def table_facts(root: str, name: str, version: int) -> TableFacts:
    """Read the row count, protocol and size of a table version from the log."""
    with _open_table(root, name, version) as table:
        protocol, added = table.protocol(), _add_actions(table)
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
    """Return the user metadata of the commits after a version, the newest first."""
    with _open_table(root, name) as table:
        count = int(table.version()) - version
        return tuple(commit.get("userMetadata") for commit in table.history(count)) if count > 0 else ()


def newest_version_or_none(root: str, name: str) -> int | None:
    """Return the newest version of a table; None if it was never written."""
    try:
        return newest_version(root, name)
    except TableMissing:
        return None


def newest_version(root: str, name: str) -> int:
    """Return the newest version of a table; raise TableMissing if it was never written."""
    with _open_table(root, name) as table:
        return int(table.version())


def _add_actions(table: DeltaTable) -> dict[str, list[Any]]:
    """Return the add actions as columns, in which each data file has the same index."""
    rows = table.get_add_actions(flatten=True)
    return {name: list(rows.column(name).to_pylist()) for name in rows.schema.names}


def _vectors(table: DeltaTable) -> dict[str, DeletionVector]:
    """Return the deletion vectors of a version by data file, spelled as in the log."""
    if not _has_vectors(table):
        return {}
    return replay_vectors(_folder(table), int(table.version()))


def _has_vectors(table: DeltaTable) -> bool:
    return VECTORS_FEATURE in (table.protocol().reader_features or ())


def _is_local(table: DeltaTable) -> bool:
    return urlsplit(table.table_uri).scheme == "file"


def _folder(table: DeltaTable) -> str:
    """Return the path of a local table, for code that opens its files directly."""
    if not _is_local(table):
        raise OSError("only Spark can read deletion vectors of a remote table")
    return unquote(urlsplit(table.table_uri).path).rstrip("/")


def _read_rows(table: DeltaTable, place: str, columns: list[str], where: pc.Expression | None) -> pa.Table:
    """Read columns of the rows that match a condition.

    In one thread, with Arrow's own file system: threads that call Python may abort the process on exit.
    """
    if not _has_vectors(table):
        whole_table = table.to_pyarrow_dataset(filesystem=_files_below(place))
        return whole_table.to_table(columns=columns, filter=where, use_threads=False)
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
        path: form.make_fragment(unquote(path), files, partition_expression=expression)
        for path, expression in _partitions(table)
    }
    without_vector = [each for path, each in fragments.items() if path not in vectors]
    whole_files = dataset.FileSystemDataset(without_vector, schema, form, files)
    parts = [whole_files.to_table(columns=columns, filter=where, use_threads=False)]
    # The condition becomes a column, because a filter would lose the row positions.
    selected = {name: dataset.field(name) for name in columns}
    selected[MATCHES] = dataset.scalar(value=True) if where is None else where
    for path, vector in vectors.items():
        one_file = dataset.FileSystemDataset([fragments[path]], schema, form, files)
        rows = one_file.to_table(columns=selected, use_threads=False)
        parts.append(_remaining_rows(rows, read_vector(place, vector)).select(columns))
    return pa.concat_tables(parts)


def _partitions(table: DeltaTable) -> Iterator[tuple[str, pc.Expression]]:
    """Yield each data file with the expression of its partition values."""
    from pyarrow import dataset

    added, keys = _add_actions(table), table.metadata().partition_columns
    for row, path in enumerate(added["path"]):
        expression = dataset.scalar(value=True)
        for key in keys:
            value = added[f"partition.{key}"][row]
            expression &= dataset.field(key).is_null() if value is None else dataset.field(key) == value
        yield path, expression


def _remaining_rows(rows: pa.Table, removed: BitMap64) -> pa.Table:
    """Return the rows of a file that match the condition and are not deleted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.arange(0, len(rows))
    is_removed = pc.is_in(numbers, value_set=pa.array(list(removed), numbers.type))
    return rows.filter(pc.and_not(rows[MATCHES], is_removed))


def _files_below(place: str) -> fs.FileSystem | None:
    """Return the file system of a local table; None for a remote one, whose files deltalake opens."""
    from pyarrow import fs

    path = Path(place).absolute()
    return fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()) if path.is_dir() else None


def one_line(problem: Exception) -> str:
    """Return a library's error message in one line and without colours; the cause is at its end."""
    return " ".join(COLOURS.sub("", str(problem)).split())


@contextmanager
def _open_table(root: str, name: str, version: int | None = None) -> Iterator[DeltaTable]:
    """Open a table; raise TableMissing or StorageFailure if it cannot be read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    place = location(root, name)
    try:
        yield DeltaTable(place, version=version, storage_options=deltalake_options(place))
    except (DeltaError, OSError, ValueError, MsgspecError) as problem:
        # Checked only after a failure: most tables exist.
        raise _missing(root, name) or _unreadable(root, name, problem) from problem


def _missing(root: str, name: str) -> StorageFailure | TableMissing | None:
    """Return the error for a table that does not exist; None if it does."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        place = location(root, name)
        if DeltaTable.is_deltatable(place, storage_options=deltalake_options(place)):
            return None
    except (DeltaError, OSError, ValueError) as problem:
        return _unreadable(root, name, problem)
    return TableMissing(
        f"table {name} was never written at {location(root, name)}", "check the path of the lake, or build it"
    )


def _unreadable(root: str, name: str, problem: Exception) -> StorageFailure:
    odd = UNREADABLE.search(root) if is_local(root) else None
    hint = "its log or a data file is damaged: restore it from a backup, or build into a new lake"
    return StorageFailure(
        f"{name} at {location(root, name)} cannot be read: {one_line(problem)}",
        hint if odd is None else f"rename the folder of the lake: its path must not contain {odd[0]}",
    )
