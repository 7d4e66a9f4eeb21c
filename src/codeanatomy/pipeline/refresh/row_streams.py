"""Pack rows for the worker process, unpack its results, and compare rows.

    streams = streams_of(rows)                     # packed, to be sent
    rows_in({"ast_files_v1": streams})             # there: batches by table
    joined("cpg_nodes", [stream, ...])             # here again: what was made of all files, as one table

Tests: `tests/unit/pipeline/test_refresh_file_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows
from codeanatomy.extract.scip_index import SCIP

# By table, packed rows of a file.
Streams: TypeAlias = Mapping[str, Sequence[bytes]]


def streams_of(rows: pa.Table) -> list[bytes]:
    """Pack rows for another process."""
    return [pack_rows(batch) for batch in rows.to_batches()]


def rows_in(streams: Streams) -> dict[str, list[pa.RecordBatch]]:
    """Unpack rows from another process, by table."""
    return {
        name: [batch for each in packed for batch in unpack_rows(each)] for name, packed in streams.items()
    }


def documents_in(rows: dict[str, list[pa.RecordBatch]]) -> dict[str, list[pa.RecordBatch]]:
    """Return the rows of a file; of a SCIP index only the documents."""
    if SCIP in rows:
        rows[SCIP] = [part.filter(pc.equal(part.column("row_kind"), "document")) for part in rows[SCIP]]
    return rows


def joined(name: str, streams: Iterable[bytes]) -> pa.Table:
    """Join packed rows to one table; columns that are added later may be missing."""
    batches = [batch for each in streams for batch in unpack_rows(each)]
    return pa.Table.from_batches(batches, batches[0].schema if batches else arrow_schema(catalog.table(name)))


def in_key_order(name: str, rows: pa.Table) -> pa.Table:
    """Sort rows by the primary key of their table."""
    return rows.sort_by([(key, "ascending") for key in catalog.table(name).primary_key])


def are_same(name: str, one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same rows, in whatever order."""
    if one.num_rows != other.num_rows:
        return False
    return bool(in_key_order(name, one).to_pylist() == in_key_order(name, other).to_pylist())
