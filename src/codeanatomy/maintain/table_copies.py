"""Copy one version of a table to a local folder: as a Delta table, or as Parquet files. No JVM.

    copy_table("/lake", "/backup", catalog.table("cpg_nodes"), 4, Commit("run-7"))     # version 0 of the copy
    write_parquet("/lake", folder, catalog.table("cpg_nodes"), 4)

Data files are copied byte for byte. Only files with a deletion vector, or with rows of other repositories,
are rewritten by the table's policy; so any reader of the oldest protocol can open the copy. It has the
columns and properties of the table, and no history. At most one row group is held in memory.

A log may have any path in it: a file outside of the table's folder is refused.

Tests: `tests/unit/maintain/test_snapshot_export.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema
from msgspec import Struct, structs

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.protocol import FEATURE_PROPERTIES, FEATURES
from codeanatomy.delta.log.replay import Add
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location, replay_table
from codeanatomy.delta.write.data_files import GROUP_BYTES, write_files
from codeanatomy.delta.write.rewrite import read_stored_rows, stored_table, to_schema
from codeanatomy.errors import StorageFailure

OPERATION = "copy"
REPO = "repo_id"
FEED = FEATURES["change_data_feed"].property
# The writer version that a property, or a key of the schema, requires.
WRITER_VERSIONS = ((FEED, 4), ("delta.generationExpression", 4), ("delta.constraints.", 3))
# Prefixes of properties that the copy does not get, beside those that enable features.
DROPPED_PROPERTIES = ("delta.feature.", "delta.rowTracking.", "delta.inCommitTimestamp", "delta.min")
# Arrow bytes of a Parquet file.
FILE_BYTES = 8 * GROUP_BYTES


class CopiedTable(Struct, frozen=True):
    """A table of a copy."""

    table: str
    # Null if a file has no statistics.
    rows: int | None
    files: int
    # How many of them were rewritten.
    rewritten: int
    size_bytes: int


class _CopySource(Struct, frozen=True):
    """The version of a table to copy, and the repository to select."""

    place: str
    table: Table
    metadata: dict[str, Any]
    files: tuple[tuple[Add, LoggedFile], ...]
    repo_id: str | None

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition columns."""
        return tuple(self.metadata["partitionColumns"])

    @property
    def schema(self) -> pa.Schema:
        """The stored columns."""
        return pa.schema(Schema.from_json(self.metadata["schemaString"]).to_arrow())

    def path(self, file: LoggedFile) -> Path:
        """Return the path of a file on this machine; refuse one outside of the table's folder."""
        folder = folder_of(self.place)
        root = Path(folder.local_root).resolve()
        if not Path(root, file.path).resolve().is_relative_to(root):
            raise StorageFailure(
                f"the log of {self.table.name} names {file.path}, which is not in its folder",
                "check where the table comes from; such a file is not copied",
            )
        return Path(folder.local_path(file.path))

    def batches(self, file: LoggedFile) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of a file, with its partition columns."""
        removed = read_vector(self.place, file.vector)
        for batch in read_stored_rows(self.path(file), file.partition, removed):
            if self.repo_id is None:
                yield batch
            else:
                yield batch.filter(pc.equal(batch.column(REPO), self.repo_id))


def _open_source(root: str, table: Table, version: int, repo_id: str | None) -> _CopySource:
    place = location(root, table.name)
    # Refuses tables that cannot be read without Spark.
    known = {file.path: file for file in light_files(root, table.name, version)}
    _, state = replay_table(root, table.name, version)
    pairs = [(add, known[unquote(add.path)]) for add in state.adds.values()]
    selected = [pair for pair in pairs if repo_id is None or pair[1].may_hold(REPO, (repo_id,))]
    source = _CopySource(place, table, state.metadata, tuple(selected), repo_id)
    for _, file in source.files:
        # Checks all paths before anything is copied.
        source.path(file)
    return source


def copied_bytes(root: str, name: str, version: int) -> int:
    """Return the size of the data files of a version."""
    return sum(add.size for add in replay_table(root, name, version)[1].adds.values())


def copy_table(
    root: str,
    target: str,
    table: Table,
    version: int,
    commit: Commit,
    *,
    repo_id: str | None = None,
    report: Callable[[int, int], None] = lambda files, size: None,
) -> CopiedTable:
    """Copy the rows of a version, of all repositories or of one, into a Delta table of another lake.

    `report` is called after each file with the number of files so far and the size of the file.
    """
    source, folder = _open_source(root, table, version, repo_id), location(target, table.name)
    actions: list[dict[str, Any]] = []
    counts: list[int | None] = []
    rewritten = size = 0
    for add, file in source.files:
        if file.vector is None and repo_id is None:
            copy = Path(folder, file.path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path(file), copy)
            actions.append({"add": structs.replace(add, data_change=True, tags=None)})
            counts.append(file.rows)
            size += add.size
        else:
            policy = stored_table(table, source.path(file), source.keys)
            for written in write_files(folder, policy, source.batches(file), is_copy=True):
                actions.append(entries.add_action(written))
                counts.append(written.rows)
                size += written.size_bytes
                rewritten += 1
        report(len(counts), add.size)
    rows = None if None in counts else sum(count or 0 for count in counts)
    figures = {"numFiles": len(counts), "numOutputRows": rows or 0, "numOutputBytes": size}
    commit_info = entries.commit_info_action(encode_stamp(commit, OPERATION), (), figures, removing=False)
    entries.write_entry(
        folder,
        0,
        [
            commit_info,
            *entries.create_actions(_new_table(source)),
            *actions,
            entries.transaction_action(commit),
        ],
    )
    return CopiedTable(table.name, rows, len(counts), rewritten, size)


def write_parquet(
    root: str,
    folder: Path,
    table: Table,
    version: int,
    *,
    repo_id: str | None = None,
    report: Callable[[int, int], None] = lambda files, size: None,
) -> tuple[CopiedTable, pa.Schema]:
    """Write the rows of a version to Parquet files of a folder, with all columns; at least one file."""
    source = _open_source(root, table, version, repo_id)
    schema = source.schema
    writer = _RollingWriter(folder, schema)
    try:
        for number, (add, file) in enumerate(source.files, start=1):
            for batch in source.batches(file):
                writer.add(to_schema(batch, schema))
            report(number, add.size)
    finally:
        writer.close()
    size = sum(path.stat().st_size for path in writer.paths)
    return CopiedTable(table.name, writer.rows, len(writer.paths), len(writer.paths), size), schema


class _RollingWriter:
    """Write rows to one file after the other, a row group at a time."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema
        self.paths: list[Path] = []
        self.rows = self.held = self.written = 0
        self.group: list[pa.RecordBatch] = []
        folder.mkdir(parents=True)
        self.writer = self._open_file()

    def add(self, batch: pa.RecordBatch) -> None:
        self.group.append(batch)
        self.held += batch.nbytes
        if self.held >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self.writer.close()

    def _open_file(self) -> pq.ParquetWriter:
        self.paths.append(self.folder / f"part-{len(self.paths):05}.parquet")
        self.written = 0
        return pq.ParquetWriter(self.paths[-1], self.schema, compression="zstd")

    def _flush(self) -> None:
        rows = pa.Table.from_batches(self.group, self.schema)
        if not rows.num_rows:
            return
        if self.written >= FILE_BYTES:
            self.writer.close()
            self.writer = self._open_file()
        self.writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows
        self.written += self.held
        self.group, self.held = [], 0


def _new_table(source: _CopySource) -> NewTable:
    """Return columns and properties of the copy, without features that old readers do not know."""
    schema, stored = source.metadata["schemaString"], source.metadata.get("configuration") or {}
    properties = {
        key: value
        for key, value in stored.items()
        if (key == FEED or key not in FEATURE_PROPERTIES) and not key.startswith(DROPPED_PROPERTIES)
    }
    required = [version for key, version in WRITER_VERSIONS if _has_key(key, properties, schema)]
    if required:
        properties |= {"delta.minReaderVersion": "1", "delta.minWriterVersion": str(max(required))}
    doc = source.metadata.get("description") or source.table.doc
    return NewTable(schema, source.keys, properties, doc)


def _has_key(key: str, properties: Mapping[str, str], schema: str) -> bool:
    is_property = any(name.startswith(key) and value != "false" for name, value in properties.items())
    return is_property or f'"{key}"' in schema
