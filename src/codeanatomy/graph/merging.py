"""What all files of a repository say of it together: one row for each node, edge and property.

    merged([made.shared for made in files])["cpg_nodes"]

Files that speak of the same thing may know different parts of it: of each column the greatest value counts,
so that the order of files does not matter. Tests: `tests/test_graph_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy.graph.rows import EDGES, NODES, PROPS, SCHEMAS, Place, Property, in_order, property_rows

# What identifies a row.
KEYS = {NODES: ("node_id",), EDGES: ("edge_id",), PROPS: ("entity_id", "prop_key")}


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
