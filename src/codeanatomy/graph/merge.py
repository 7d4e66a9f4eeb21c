"""Merge what the files of a repository contribute to shared nodes, edges and properties.

    row = shared_row(file, graph.shared)            # the contribution of a file, a row of `graph_shared_v1`
    merge_shared_rows(unpack_shared_rows(rows))["cpg_nodes"]

Files may know different columns of the same node: the greatest value of each column wins, so that the order
of files does not matter. Edges of the same kind and ends are numbered again, since a file may know only some
of them; no edge of the repository has a property that would name its number.

Tests: `tests/unit/graph/test_rows.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows, unpack_rows, with_texts
from codeanatomy.graph.facts import KeptFacts
from codeanatomy.graph.resolution import Property
from codeanatomy.graph.rows import (
    EDGES,
    NODES,
    PROPS,
    REPEAT_KEY,
    RowOwner,
    number_edges,
    property_rows,
)
from codeanatomy.graph.table_rows import schema_of, sort_rows

SHARED = "graph_shared_v1"
# The columns of `graph_shared_v1`, by the table of the rows they hold.
COLUMNS = {NODES: "nodes", EDGES: "edges", PROPS: "props"}
# The columns that identify a row.
KEYS = {
    NODES: ("node_id",),
    EDGES: ("edge_kind", "src_node_id", "dst_node_id", *REPEAT_KEY),
    PROPS: ("entity_id", "prop_key"),
}
SCHEMA = arrow_schema(catalog.table(SHARED))


def shared_row(file: KeptFacts, tables: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
    """Return the shared rows of a file as one row of `graph_shared_v1`."""
    cells = {"repo_id": file.repo_id, "file_id": file.file_id, "path": file.path}
    # Copied, and as texts: the stream of a slice has bytes of its neighbours, and codes depend on them; equal
    # rows must have equal bytes.
    streams = {column: _pack_texts(name, tables[name]) for name, column in COLUMNS.items()}
    return pa.RecordBatch.from_pylist([{**cells, **streams}], SCHEMA)


def _pack_texts(name: str, rows: pa.RecordBatch) -> bytes:
    if not rows.num_rows:
        return _no_rows(name)
    return pack_rows(with_texts(rows.take(pa.array(range(rows.num_rows), pa.int64()))))


@cache
def _no_rows(name: str) -> bytes:
    return pack_rows(pa.RecordBatch.from_pylist([], arrow_schema(catalog.table(name))))


def unpack_shared_rows(rows: pa.RecordBatch) -> Iterator[dict[str, pa.RecordBatch]]:
    """Yield the shared rows of each file, by table, from rows of `graph_shared_v1`."""
    columns = [rows.column(column) for column in COLUMNS.values()]
    for streams in zip(*columns, strict=True):
        yield {name: next(unpack_rows(each.as_buffer())) for name, each in zip(COLUMNS, streams, strict=True)}


def merge_shared_rows(contributions: Iterable[Mapping[str, pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
    """Merge the contributions of all files to the rows of the repository, by table."""
    merged: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in KEYS}
    for tables in contributions:
        for name, key in KEYS.items():
            _merge(merged[name], tables[name], key)
    rows = {name: list(by_key.values()) for name, by_key in merged.items()}
    _number_again(rows[EDGES])
    graph = {
        name: sort_rows(name, pa.RecordBatch.from_pylist(rows[name], schema_of(name)))
        for name in (NODES, EDGES)
    }
    repo_id = rows[NODES][0]["repo_id"] if rows[NODES] else ""
    properties = [_property(row) for row in rows[PROPS]]
    [property_tables] = property_rows([properties], [RowOwner(repo_id, None, None)])
    return {**graph, **property_tables}


def _merge(merged: dict[tuple[Any, ...], dict[str, Any]], batch: pa.RecordBatch, key: Sequence[str]) -> None:
    for row in batch.to_pylist():
        identity = tuple(row[name] for name in key)
        known = merged.setdefault(identity, row)
        if known is not row and known != row:
            merged[identity] = {name: _greater(known[name], row[name]) for name in row}


def _number_again(edges: Iterable[dict[str, Any]]) -> None:
    """Set `repeat` of all edges."""
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in edges:
        by_kind[row["edge_kind"]].append(row)
    for rows in by_kind.values():
        columns = {name: [row[name] for row in rows] for name in KEYS[EDGES]}
        _, repeats = number_edges(columns["src_node_id"], columns["dst_node_id"], columns)
        for row, number in zip(rows, repeats or [0] * len(rows), strict=True):
            row["repeat"] = number


def _greater(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _property(row: Mapping[str, Any]) -> Property:
    value = row[f"value_{row['value_type']}"]
    return row["entity_id"], row["node_kind"], row["prop_key"], row["value_type"], value
