"""Data files that Python writes: Arrow batches as Parquet, by the table's policy, with their statistics.

Spark writes nested rows one value at a time, which for millions of syntax nodes costs several times what it
takes to parse the sources. Arrow writes them by column. So an executor that has rows as Arrow anyway writes
the file itself, into the table's folder, where nobody sees it before a commit tells of it (`storage.adopt`).

    file = write_file("/lake/extract/ast_files_v1", catalog.table("ast_files_v1"), batches)
    file.rows, file.stats          # 1790, '{"numRecords":1790,"minValues":{"file_id":"file:-0...

Rows come in the order of the table. Tests: `tests/test_adopt.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import json

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.storage.layout import resolve_stats_columns
from codeanatomy.storage.transaction import DataFile

# Arrow bytes of a row group: a reader of nested rows holds one group.
GROUP_BYTES = 128 * 1024 * 1024


class _Stats:
    """Minima, maxima and counts of nulls of some columns."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.columns = tuple(columns)
        self.rows = 0
        self.low: dict[str, object] = {}
        self.high: dict[str, object] = {}
        self.nulls = dict.fromkeys(self.columns, 0)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        for name in self.columns:
            column = batch.column(name)
            self.nulls[name] += column.null_count
            found = pc.min_max(column).as_py()
            if found["min"] is not None:
                self.low[name] = min(self.low.get(name, found["min"]), found["min"])
                self.high[name] = max(self.high.get(name, found["max"]), found["max"])

    def text(self) -> str:
        """As Delta's log has them."""
        counts = {"numRecords": self.rows, "minValues": self.low, "maxValues": self.high}
        return json.encode({**counts, "nullCount": self.nulls}).decode()


def write_file(folder: str, table: Table, batches: Iterable[pa.RecordBatch]) -> DataFile | None:
    """Write rows into one new file of a local folder; none if there are no rows."""
    stats = _Stats(resolve_stats_columns(table))
    path = Path(folder) / f"part-{uuid4()}.{table.write.writer.compression}.parquet"
    writer: pq.ParquetWriter | None = None
    group: list[pa.RecordBatch] = []
    held = 0
    try:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = _writer(path, table, batch.schema)
            stats.add(batch)
            group.append(batch)
            held += batch.nbytes
            if held >= GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group))
                group, held = [], 0
        if writer is None:
            return None
        if group:
            writer.write_table(pa.Table.from_batches(group))
    finally:
        if writer is not None:
            writer.close()
    return DataFile(path.name, path.stat().st_size, stats.rows, stats.text())


def _text_leaves(columns: Iterable[Column], lead: str = "") -> Iterator[str]:
    """The paths of text columns, as Parquet spells them."""
    for column in columns:
        path = f"{lead}{column.name}" + (".list.element" if column.array else "")
        if column.type == "struct":
            yield from _text_leaves(column.fields, f"{path}.")
        elif column.type == "string":
            yield path


def _writer(path: Path, table: Table, schema: pa.Schema) -> pq.ParquetWriter:
    writer = table.write.writer
    texts = [] if not writer.dictionary else list(_text_leaves(table.columns))
    return pq.ParquetWriter(
        path,
        schema,
        compression="none" if writer.compression == "uncompressed" else writer.compression,
        # Of numbers, which are positions and counts, a dictionary costs time and makes files larger.
        use_dictionary=[leaf for leaf in texts if leaf.split(".")[0] not in writer.dictionary_off],
        # Only these are ever filtered by; footers with bounds of every nested field would be long.
        write_statistics=list(resolve_stats_columns(table)),
    )
