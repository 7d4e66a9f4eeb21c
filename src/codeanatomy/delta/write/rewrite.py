"""Write data files again without some of their rows, and the change files of such a commit.

    copies = rewrite_file(table, "/lake/graph/cpg_nodes", file, BitMap64([40, 41]))     # rows 40 and 41 go
    changes = write_change_files(table, location, schema_json, removed, new_files)      # for the change feed

A table without deletion vectors is open to every reader of Delta. Rows then leave it by copy-on-write: the
rows of a data file that stay are written to a new file, in their order, by the table's policy. A feed that
compares the two files would show the copied rows as deleted and inserted, so Delta's protocol has change
files, in `_change_data`: the columns of the table and `_change_type`. If a commit has some, they are all of
its changes. At most a row group of each file is in memory.

Tests: `tests/unit/delta/test_copy_on_write.py`, `tests/spark/test_copy_on_write.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema
from msgspec import structs

from codeanatomy.catalog.spec import Column, Table, WriterProperties
from codeanatomy.delta.log.deletion_vectors import read_vector
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.replay import CHANGE_FOLDER
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.write.data_files import TableWriter, write_files
from codeanatomy.delta.write.owner_rows import RemovedRows

if TYPE_CHECKING:
    from pyroaring import BitMap64

# Rows of a batch.
BATCH_ROWS = 8192
# Folder of change files in a table's folder, and the column that they have beside those of the table.
CHANGE_TYPE = Column("_change_type", "string", "delete or insert.")


def rewrite_file(table: Table, location: str, file: LoggedFile, removed: BitMap64) -> list[DataFile]:
    """Write the rows of a data file without those at some positions to a new file of the table's folder."""
    path, keys = _local_path(location, file), tuple(file.partition)
    rows = read_stored_rows(path, file.partition, removed)
    return write_files(location, stored_table(table, path, keys), rows, is_copy=True)


def read_stored_rows(
    path: str | Path, partition: Mapping[str, str | None], positions: Iterable[int], *, inverted: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file, with its partition columns: without those at some positions, or only those."""
    listed = pa.array(list(positions), pa.int64())
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as opened:
        first = 0
        for group in range(opened.num_row_groups):
            for batch in opened.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                is_listed = pc.is_in(pa.arange(first, first + len(batch)), value_set=listed)
                first += len(batch)
                full = _add_partition_columns(batch, partition)
                yield full.filter(pc.invert(is_listed) if inverted else is_listed)


def _add_partition_columns(batch: pa.RecordBatch, partition: Mapping[str, str | None]) -> pa.RecordBatch:
    """Add the partition columns to a batch; some writers store them in the file, too."""
    for name, value in partition.items():
        if name not in batch.schema.names:
            batch = batch.append_column(name, pa.array([value] * len(batch), pa.string()))
    return batch


def to_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns of a schema; a column that its file lacks is null."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stored_table(table: Table, path: str | Path, keys: tuple[str, ...]) -> Table:
    """Return the table with the columns of a file and the partitions of the stored table."""
    names = {*pq.read_schema(path).names, *keys}
    writer = table.write.writer
    blooms = tuple(bloom for bloom in writer.bloom_filters if bloom.column in names)
    return structs.replace(
        table,
        columns=tuple(column for column in table.columns if column.name in names),
        write=structs.replace(
            table.write, partition_by=keys, writer=structs.replace(writer, bloom_filters=blooms)
        ),
    )


def write_change_files(
    table: Table, location: str, schema_json: str, removed: Sequence[RemovedRows], added: Sequence[DataFile]
) -> list[DataFile]:
    """Write the rows that a commit removes and adds to change files, with paths relative to the table."""
    schema = pa.schema(Schema.from_json(schema_json).to_arrow())
    writer = TableWriter(f"{location}/{CHANGE_FOLDER}", _change_table(table), is_copy=True)
    for change, batches in (
        ("delete", (batch for each in removed for batch in _removed_rows(location, each))),
        ("insert", (batch for each in added for batch in _all_rows(location, each))),
    ):
        for batch in batches:
            rows = to_schema(batch, schema)
            kinds = pa.array([change] * len(rows), pa.string())
            writer.add(rows.append_column(CHANGE_TYPE.name, kinds))
    return [structs.replace(file, path=f"{CHANGE_FOLDER}/{file.path}") for file in writer.close()]


def _removed_rows(location: str, each: RemovedRows) -> Iterator[pa.RecordBatch]:
    path, before = _local_path(location, each.file), read_vector(location, each.file.vector)
    if each.positions is None:
        return read_stored_rows(path, each.file.partition, before)
    return read_stored_rows(path, each.file.partition, each.positions - before, inverted=False)


def _all_rows(location: str, file: DataFile) -> Iterator[pa.RecordBatch]:
    return read_stored_rows(_local_path(location, file), file.partition, ())


def _local_path(location: str, file: LoggedFile | DataFile) -> str:
    return folder_of(location).local_path(file.path, least=file.size_bytes)


def _change_table(table: Table) -> Table:
    """Return the table of change files: no statistics, no filters."""
    write = structs.replace(
        table.write,
        stats_policy="off",
        stats_columns=(),
        writer=WriterProperties(compression=table.write.writer.compression),
    )
    return structs.replace(table, columns=(*table.columns, CHANGE_TYPE), write=write)
