"""What all files of a repository say of it together: one row for each node, edge and property.

    row = shared_row(file, made.shared)                    # what one file says, as `graph_shared_v1` keeps it
    merged(told_in(rows))["cpg_nodes"]

Files that speak of the same thing may know different parts of it: of each column the greatest value counts,
so that the order of files does not matter. Tests: `tests/unit/graph/test_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows
from codeanatomy.graph.file_view import File
from codeanatomy.graph.rows import EDGES, NODES, PROPS, SCHEMAS, Place, Property, in_order, property_rows

SHARED = "graph_shared_v1"
# Its columns, by the table whose rows they hold.
COLUMNS = {NODES: "nodes", EDGES: "edges", PROPS: "props"}
# What identifies a row.
KEYS = {NODES: ("node_id",), EDGES: ("edge_id",), PROPS: ("entity_id", "prop_key")}
SCHEMA = arrow_schema(catalog.table(SHARED))
NOTHING_SHARED = pa.RecordBatch.from_pylist([], SCHEMA)


def shared_row(file: File, told: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
    """What a file says of its repository, as a row."""
    cells = {"repo_id": file.repo_id, "file_id": file.file_id, "path": file.path}
    streams = {column: pack_rows(told[name]) for name, column in COLUMNS.items()}
    return pa.RecordBatch.from_pylist([{**cells, **streams}], SCHEMA)


def told_in(rows: pa.RecordBatch) -> Iterator[dict[str, pa.RecordBatch]]:
    """What the files of some rows say."""
    columns = [rows.column(column) for column in COLUMNS.values()]
    for streams in zip(*columns, strict=True):
        yield {name: next(unpack_rows(each.as_buffer())) for name, each in zip(COLUMNS, streams, strict=True)}


def merged(told: Iterable[Mapping[str, pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
    """The rows of a repository, by table."""
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in KEYS}
    for tables in told:
        for name, key in KEYS.items():
            _merge(found[name], tables[name], key)
    rows = {name: list(each.values()) for name, each in found.items()}
    made = {
        name: in_order(name, pa.RecordBatch.from_pylist(rows[name], SCHEMAS[name])) for name in (NODES, EDGES)
    }
    repo_id = rows[NODES][0]["repo_id"] if rows[NODES] else ""
    return {**made, **property_rows([_property(row) for row in rows[PROPS]], Place(repo_id, None, None))}


def _merge(found: dict[tuple[Any, ...], dict[str, Any]], batch: pa.RecordBatch, key: Sequence[str]) -> None:
    for row in batch.to_pylist():
        identity = tuple(row[name] for name in key)
        known = found.setdefault(identity, row)
        if known is not row and known != row:
            found[identity] = {name: _greater(known[name], row[name]) for name in row}


def _greater(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _property(row: Mapping[str, Any]) -> Property:
    value = row[f"value_{row['value_type']}"]
    return row["entity_id"], row["node_kind"], row["prop_key"], row["value_type"], value
