"""Read table versions without a JVM: data files and facts from the log, and rows as Arrow.

    rows = light_table("lake", "run_manifest", ["run_id", "repo_id"], {"repo_id": ["requests"]})
    light_files("lake", "cpg_nodes", 3)[0].partition     # {"node_kind": "CLASS"}, of version 3

A lake may be a local folder or in an object store. DuckDB reads the rows (`delta.read.duck`).

Tables with other reader features than deletion vectors are refused: Spark has to read them. Tests:
`tests/spark/test_build.py`, `tests/unit/query/test_verify.py`, `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.protocol import HARMLESS
from codeanatomy.delta.log.replay import VECTORS_FEATURE, LogState, read_commit_info
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.read.file_index import LoggedFile, logged_files
from codeanatomy.delta.read.open_table import location, newest_version, open_table, replay_table
from codeanatomy.errors import StorageFailure, TableMissing

if TYPE_CHECKING:
    import pyarrow as pa


def light_table(
    root: str,
    name: str,
    columns: Sequence[str],
    where: Mapping[str, Collection[str]] | None = None,
    version: int | None = None,
) -> pa.Table:
    """Read columns of a version (default: the newest) of a table, filtered by the values of columns.

    A column of the catalogue that the stored table lacks has its default, or null.
    """
    from codeanatomy.delta.read.duck import read_arrow

    return read_arrow(root, name, light_files(root, name, version), columns, where or {})


def light_files(root: str, name: str, version: int | None = None) -> tuple[LoggedFile, ...]:
    """Return the data files of a version (default: the newest), for a reader of Parquet and deletion vectors.

    Raise StorageFailure if the table has other reader features.
    """
    opened = open_table(LakeTables(root), name, version)
    _refuse_features(name, opened.info)
    return opened.files


def _refuse_features(name: str, info: SnapshotInfo) -> None:
    """Raise StorageFailure for a reader feature that DuckDB on the files lacks."""
    # The only feature of reader version 2.
    implied = {"columnMapping"} if info.min_reader_version == 2 else set()
    lacking = implied.union(info.reader_features) - HARMLESS - {VECTORS_FEATURE}
    if lacking:
        raise StorageFailure(
            f"{name} uses {', '.join(sorted(lacking))}, which only Spark can read",
            "read the table with Spark, or build it without these features",
        )


def logged_paths(root: str, name: str, version: int) -> tuple[str, ...]:
    """Return the data files and deletion vectors of a version, relative to the table's folder.

    Works for tables with any reader feature.
    """
    return state_paths(replay_table(root, name, version)[1])


def state_paths(state: LogState) -> tuple[str, ...]:
    """Return the data files and deletion vectors of a state of a table, relative to the table's folder."""
    # Imported here: most tables have no vectors.
    from codeanatomy.delta.log.deletion_vectors import vector_path

    adds = state.adds.values()
    vectors = (vector_path(add.deletion_vector) for add in adds if add.deletion_vector is not None)
    return (*(unquote(add.path) for add in adds), *sorted({path for path in vectors if path is not None}))


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
    _, state = replay_table(root, name, version)
    files, protocol = logged_files(catalog.table(name), state), state.protocol
    counts = [None if file.rows is None else file.rows - file.deleted_rows for file in files]
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    return TableFacts(
        None if None in counts else sum(count or 0 for count in counts),
        protocol["minReaderVersion"],
        protocol["minWriterVersion"],
        tuple(sorted(features)),
        len(files),
        sum(file.size_bytes for file in files),
    )


def user_metadata_since(root: str, name: str, version: int) -> tuple[str | None, ...]:
    """Return the user metadata of the commits after a version, the newest first."""
    place = location(root, name)
    commits = range(newest_version(root, name), version, -1)
    return tuple(read_commit_info(place, number).get("userMetadata") for number in commits)


def newest_version_or_none(root: str, name: str) -> int | None:
    """Return the newest version of a table; None if it was never written."""
    try:
        return newest_version(root, name)
    except TableMissing:
        return None
