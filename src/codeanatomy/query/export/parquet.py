"""Two Parquet files, with the columns of `cpg_nodes` and `cpg_edges` and one for each property.

    SELECT name, text FROM 'graph/nodes.parquet' WHERE node_kind = 'DOCSTRING'

A row group is written as soon as it is full. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codeanatomy.query.export.rows import Batch, Counts, ExportRows, Row

NAMES = ("nodes.parquet", "edges.parquet")
# Rows of a row group: enough to compress well, few enough for memory.
GROUP = 40_000


def write(nodes: ExportRows, edges: ExportRows, target: Path) -> Counts:
    """Write the files of the graph into a folder."""
    # Imported here, because the import takes longer than writing most other formats.
    import pyarrow as pa
    from pyarrow import parquet

    from codeanatomy.arrow import arrow_field

    for name, rows in zip(NAMES, (nodes, edges), strict=True):
        schema = pa.schema([arrow_field(column) for column in rows.flat_columns])
        with parquet.ParquetWriter(target / name, schema, compression="zstd") as file:
            for group in _groups(rows):
                columns = zip(*rows.flat(group), strict=True)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
                file.write_batch(pa.record_batch(arrays, schema=schema), row_group_size=GROUP)
    return Counts(nodes.count, edges.count)


def _groups(rows: ExportRows) -> Iterator[Batch]:
    group: list[Row] = []
    for batch in rows:
        group += batch
        if len(group) >= GROUP:
            yield group
            group = []
    if group:
        yield group
