"""Bring the rows of several tables about the files of a task together, without a join.

    bundles = bundled(frames, tasks=8)                  # rows (task, table, piece)
    for file in files_in(batches): file.rows("relations_v1")

Every table is packed where it is read: the rows of a task become one piece, and Spark exchanges pieces. So a
table of millions of short rows costs no more than its bytes, where a join of lists by file would make each of
them a row, an aggregate and a row again. Tests: `tests/spark/test_graph.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import pack_rows, to_python, unpack_rows
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.delta.write.data_files import Batches
from codeanatomy.graph.file_view import INNER, NESTED, READS, GraphFile

# Rows and bytes of the batches that Spark passes to Python, which packs each batch into pieces.
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * 1024 * 1024),
}
TASK = "task"
PIECES = "task int, name string, piece binary"
# The table that lists the files.
FILES = "repo_files_v1"


def selected(name: str, rows: DataFrame, *, instructions: bool) -> DataFrame:
    """Select the columns that are read of a table; lists of structs become structs of lists."""
    key = "owner_file_id" if name == "relations_v1" else "file_id"
    columns = [_column(column, fields, instructions) for column, fields in READS[name].items()]
    places = FILE_COLUMN_NAMES if name == FILES else ()
    # Of several rows for a file, such as documents of two indexes, the first is used.
    order = ("index_id",) if name == "scip_index_v1" else ()
    ids = [F.col(key).alias("file_id"), *(F.col(each) for each in (*places, *order) if each != "file_id")]
    return rows.select(*ids, *columns)


def _column(name: str, fields: tuple[str, ...], instructions: bool) -> Column:
    if not fields:
        return F.col(name)
    read = [field for field in fields if field != "instructions" or instructions]
    columns = [
        _inner(f"{name}.{field}", INNER[field]).alias(field)
        if field in INNER
        else F.col(f"{name}.{field}").alias(field)
        for field in read
    ]
    return F.when(F.col(name).isNotNull(), F.struct(*columns)).alias(name)


def _inner(path: str, fields: tuple[str, ...]) -> Column:
    """Select fields of lists of structs inside a list of structs."""

    def read(one: Column) -> Column:
        return F.struct(*(one[field].alias(field) for field in fields))

    return F.transform(path, lambda each: F.transform(each, read))


def bundled(frames: Mapping[str, DataFrame], tasks: int) -> DataFrame:
    """Return the pieces of all tables, each in the partition of its task."""
    pieces = [_pieces(name, rows, tasks) for name, rows in frames.items()]
    return reduce(DataFrame.union, pieces).repartitionById(tasks, TASK)


def _pieces(name: str, rows: DataFrame, tasks: int) -> DataFrame:
    def pack(batches: Batches) -> Batches:
        for batch in batches:
            numbers = batch.column(0)
            content = batch.select(range(1, batch.num_columns))
            for number in pc.unique(numbers).to_pylist():
                piece = pack_rows(content.filter(pc.equal(numbers, number)))
                yield pa.RecordBatch.from_pylist([{"task": number, "name": name, "piece": piece}], SCHEMA)

    task = F.pmod(F.hash("file_id"), F.lit(tasks)).alias(TASK)
    return rows.select(task, "*").mapInArrow(pack, PIECES)


SCHEMA = pa.schema({"task": pa.int32(), "name": pa.string(), "piece": pa.binary()})


def by_file(batches: Batches) -> dict[str, dict[str, list[pa.RecordBatch]]]:
    """Group the rows of each table by file."""
    files: defaultdict[str, dict[str, list[pa.RecordBatch]]] = defaultdict(dict)
    for batch in batches:
        for name, piece in zip(batch.column(1).to_pylist(), batch.column(2), strict=True):
            for rows in unpack_rows(piece.as_buffer()):
                _add(files, name, rows)
    return files


def files_in(batches: Batches) -> Iterator[GraphFile]:
    """Yield the files of a task."""
    files = by_file(batches)
    for file_id in sorted(files):
        if FILES in files[file_id]:
            tables = {name: _table_columns(name, parts) for name, parts in files[file_id].items()}
            row = tables[FILES]
            yield GraphFile(row["repo_id"], file_id, row["path"], tables)


def _add(files: dict[str, dict[str, list[pa.RecordBatch]]], name: str, rows: pa.RecordBatch) -> None:
    start = 0
    for file_id, same in groupby(rows.column(0).to_pylist()):
        count = sum(1 for _ in same)
        files[file_id].setdefault(name, []).append(rows.slice(start, count))
        start += count


def _table_columns(name: str, parts: list[pa.RecordBatch]) -> dict[str, Any]:
    names = [field for field in parts[0].schema.names if field != "file_id"]
    if name not in NESTED:
        columns = {each: [to_python(part.column(each)) for part in parts] for each in names}
        return {each: list(chain.from_iterable(lists)) for each, lists in columns.items()}
    rows = [row for part in parts for row in _nested(part, names)]
    return min(rows, key=lambda row: str(row.get("index_id", "")))


def _nested(part: pa.RecordBatch, names: list[str]) -> list[dict[str, Any]]:
    columns = [to_python(part.column(each)) for each in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
