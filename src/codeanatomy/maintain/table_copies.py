"""Copies of a version of a local table: a Delta table of its own, or Parquet files. No JVM.

    copy_table("/lake", "/backup", catalog.table("cpg_nodes"), 4, Commit("run-7"))     # version 0 of the copy
    write_parquet("/lake", folder, catalog.table("cpg_nodes"), 4)

Data files are copied byte for byte. Only those with a deletion vector, or with rows that are not wanted, are
written anew, by the table's policy: so the copy asks no more of a reader than the oldest protocol. It has the
columns and properties of the table, and no history. No more than a row group is held.

A log may say anything: a file that is not in the table's own folder is refused.

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
from codeanatomy.delta.layout import FEATURE_PROPERTIES, FEATURES
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.replay import Add
from codeanatomy.delta.log.transaction import NewTable
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files, location
from codeanatomy.delta.read.readable import replay_table
from codeanatomy.delta.write.data_files import GROUP_BYTES, write_files
from codeanatomy.errors import StorageFailure

OPERATION = "copy"
REPO = "repo_id"
FEED = FEATURES["change_data_feed"].property
# What a writer has to know of a table: by its properties, or by what its columns say.
WRITERS = ((FEED, 4), ("delta.generationExpression", 4), ("delta.constraints.", 3))
# Properties of features that the copy does not have, besides those that switch them on.
LEFT_OUT = ("delta.feature.", "delta.rowTracking.", "delta.inCommitTimestamp", "delta.min")
# Rows that are looked at together.
BATCH_ROWS = 8192
# Arrow bytes of a Parquet file.
FILE_BYTES = 8 * GROUP_BYTES


class CopiedTable(Struct, frozen=True):
    """A table of a copy."""

    table: str
    # Null if the writer of a file has not counted.
    rows: int | None
    files: int
    # Of them those that were written anew.
    rewritten: int
    size_bytes: int


class _Source(Struct, frozen=True):
    """A version of a table that is copied, and whose rows of it."""

    place: str
    table: Table
    metadata: dict[str, Any]
    files: tuple[tuple[Add, LoggedFile], ...]
    repo_id: str | None

    @property
    def keys(self) -> tuple[str, ...]:
        """Its partition columns."""
        return tuple(self.metadata["partitionColumns"])

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as they are stored."""
        return pa.schema(Schema.from_json(self.metadata["schemaString"]).to_arrow())

    def path(self, file: LoggedFile) -> Path:
        """Where a file is; refused if that is elsewhere than in the folder of the table."""
        folder = Path(self.place).resolve()
        found = Path(folder, file.path)
        if not found.resolve().is_relative_to(folder):
            raise StorageFailure(
                f"the log of {self.table.name} names {file.path}, which is not in its folder",
                "copy it with a tool that you trust with it",
            )
        return found

    def batches(self, file: LoggedFile) -> Iterator[pa.RecordBatch]:
        """The wanted rows of a file, with the values of its partition."""
        removed = pa.array(list(read_vector(self.place, file.vector)), pa.int64())
        with pq.ParquetFile(self.path(file), coerce_int96_timestamp_unit="us") as opened:
            first = 0
            for group in range(opened.num_row_groups):
                for batch in opened.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                    kept = pc.invert(pc.is_in(pa.arange(first, first + len(batch)), value_set=removed))
                    first += len(batch)
                    full = _with_values(batch, file.partition)
                    if self.repo_id is not None:
                        kept = pc.and_(kept, pc.equal(full.column(REPO), self.repo_id))
                    yield full.filter(kept)


def _source(root: str, table: Table, version: int, repo_id: str | None) -> _Source:
    place = location(root, table.name)
    # Refuses what cannot be read without Spark.
    known = {file.path: file for file in light_files(root, table.name, version)}
    state = replay_table(root, table.name, version)
    pairs = [(add, known[unquote(add.path)]) for add in state.adds.values()]
    wanted = [pair for pair in pairs if repo_id is None or pair[1].may_hold(REPO, (repo_id,))]
    source = _Source(place, table, state.metadata, tuple(wanted), repo_id)
    for _, file in source.files:
        # Before anything is made of what it names.
        source.path(file)
    return source


def copied_bytes(root: str, name: str, version: int) -> int:
    """The bytes of the data files of a version."""
    return sum(add.size for add in replay_table(root, name, version).adds.values())


def copy_table(
    root: str,
    target: str,
    table: Table,
    version: int,
    commit: Commit,
    *,
    repo_id: str | None = None,
    tell: Callable[[int, int], None] = lambda files, size: None,
) -> CopiedTable:
    """Make a Delta table in another lake that has the rows of a version, of all repositories or of one.

    `tell` hears of each file: how many of the table there are so far, and how many bytes it has.
    """
    source, folder = _source(root, table, version, repo_id), location(target, table.name)
    actions: list[dict[str, Any]] = []
    counts: list[int | None] = []
    rewritten = size = 0
    for add, file in source.files:
        if file.vector is None and repo_id is None:
            goal = Path(folder, file.path)
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path(file), goal)
            actions.append({"add": structs.replace(add, data_change=True, tags=None)})
            counts.append(file.rows)
            size += add.size
        else:
            for made in write_files(folder, _as_stored(source, file), source.batches(file), is_copy=True):
                actions.append(entries.add_action(made))
                counts.append(made.rows)
                size += made.size_bytes
                rewritten += 1
        tell(len(counts), add.size)
    rows = None if None in counts else sum(count or 0 for count in counts)
    figures = {"numFiles": len(counts), "numOutputRows": rows or 0, "numOutputBytes": size}
    told = entries.commit_info_action(encode_stamp(commit, OPERATION), (), figures, removing=False)
    entries.write_entry(folder, 0, [told, *entries.create_actions(_born(source)), *actions, entries.transaction_action(commit)])
    return CopiedTable(table.name, rows, len(counts), rewritten, size)


def write_parquet(
    root: str,
    folder: Path,
    table: Table,
    version: int,
    *,
    repo_id: str | None = None,
    tell: Callable[[int, int], None] = lambda files, size: None,
) -> tuple[CopiedTable, pa.Schema]:
    """Write the rows of a version into Parquet files of a folder, all columns in each; at least one file."""
    source = _source(root, table, version, repo_id)
    schema = source.schema
    writer = _Rolling(folder, schema)
    try:
        for number, (add, file) in enumerate(source.files, start=1):
            for batch in source.batches(file):
                writer.add(_fitted(batch, schema))
            tell(number, add.size)
    finally:
        writer.close()
    size = sum(path.stat().st_size for path in writer.paths)
    return CopiedTable(table.name, writer.rows, len(writer.paths), len(writer.paths), size), schema


class _Rolling:
    """Writes rows into one file after the other, a row group at a time."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema
        self.paths: list[Path] = []
        self.rows = self.held = self.written = 0
        self.group: list[pa.RecordBatch] = []
        folder.mkdir(parents=True)
        self.writer = self._opened()

    def add(self, batch: pa.RecordBatch) -> None:
        self.group.append(batch)
        self.held += batch.nbytes
        if self.held >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self.writer.close()

    def _opened(self) -> pq.ParquetWriter:
        self.paths.append(self.folder / f"part-{len(self.paths):05}.parquet")
        self.written = 0
        return pq.ParquetWriter(self.paths[-1], self.schema, compression="zstd")

    def _flush(self) -> None:
        rows = pa.Table.from_batches(self.group, self.schema)
        if not rows.num_rows:
            return
        if self.written >= FILE_BYTES:
            self.writer.close()
            self.writer = self._opened()
        self.writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows
        self.written += self.held
        self.group, self.held = [], 0


def _with_values(batch: pa.RecordBatch, partition: Mapping[str, str | None]) -> pa.RecordBatch:
    """A batch with the columns that the path of its file tells; some writers store them, too."""
    for name, value in partition.items():
        if name not in batch.schema.names:
            batch = batch.append_column(name, pa.array([value] * len(batch), pa.string()))
    return batch


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the columns of a table; one that its file does not have yet is null."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _as_stored(source: _Source, file: LoggedFile) -> Table:
    """The table's policy, for the columns of a file and the partitions of the stored table."""
    names = {*pq.read_schema(source.path(file)).names, *source.keys}
    table = source.table
    writer = table.write.writer
    blooms = tuple(bloom for bloom in writer.bloom_filters if bloom.column in names)
    return structs.replace(
        table,
        columns=tuple(column for column in table.columns if column.name in names),
        write=structs.replace(
            table.write, partition_by=source.keys, writer=structs.replace(writer, bloom_filters=blooms)
        ),
    )


def _born(source: _Source) -> NewTable:
    """What the copy begins with: columns and properties, without what old readers do not know."""
    schema, given = source.metadata["schemaString"], source.metadata.get("configuration") or {}
    properties = {
        key: value
        for key, value in given.items()
        if (key == FEED or key not in FEATURE_PROPERTIES) and not key.startswith(LEFT_OUT)
    }
    asked = [number for word, number in WRITERS if _asks(word, properties, schema)]
    if asked:
        properties |= {"delta.minReaderVersion": "1", "delta.minWriterVersion": str(max(asked))}
    doc = source.metadata.get("description") or source.table.doc
    return NewTable(schema, source.keys, properties, doc)


def _asks(word: str, properties: Mapping[str, str], schema: str) -> bool:
    named = any(key.startswith(word) and value != "false" for key, value in properties.items())
    return named or f'"{word}"' in schema
