"""What all files of a repository say of it together: one row for each node, edge and property.

    merged([made.shared for made in files])["cpg_nodes"]

Files that speak of the same thing may know different parts of it: of each column the greatest value counts,
so that the order of files does not matter. Tests: `tests/test_graph_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.graph.rows import EDGES, NODES, PROPS, Batches, Place, Property, in_order, property_rows

# What identifies a row, and what parts the rows of a table.
KEYS = {NODES: ("node_id",), EDGES: ("edge_id",), PROPS: ("entity_id", "prop_key")}
PARTS = {NODES: "node_kind", EDGES: "edge_kind"}


def merged(told: Iterable[Mapping[str, Batches]]) -> dict[str, Batches]:
    """The rows of a repository, by table."""
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in KEYS}
    for tables in told:
        for name, key in KEYS.items():
            for batch in tables[name]:
                _merge(found[name], batch, key)
    rows = {name: list(each.values()) for name, each in found.items()}
    made = {name: _batches(name, rows[name], part) for name, part in PARTS.items()}
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


def _batches(name: str, rows: list[dict[str, Any]], part: str) -> Batches:
    schema = arrow_schema(catalog.table(name))
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row[part], []).append(row)
    return [in_order(name, pa.RecordBatch.from_pylist(kinds[kind], schema)) for kind in sorted(kinds)]


def _property(row: Mapping[str, Any]) -> Property:
    value = row[f"value_{row['value_type']}"]
    return row["entity_id"], row["node_kind"], row["prop_key"], row["value_type"], value
