"""Node-link JSON, as networkx reads it.

    networkx.node_link_graph(json.load(open("graph.json")), edges="edges")    # a MultiDiGraph

    {"directed":true,"multigraph":true,"graph":{},"nodes":[
    {"id":"class:...","node_kind":"CLASS",...},
    ...],"edges":[
    {"source":"module:...","target":"class:...","edge_kind":"CONTAINS",...,"key":"CONTAINS;..."}]}

One line per node and edge. Versions of networkx before 3.4 need `link="edges"`.

Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from codeanatomy.query.export.rows import Counting, Counts, ExportRows

# Names that networkx requires for these columns.
NAMES = {"node_id": "id", "src_node_id": "source", "dst_node_id": "target", "edge_id": "key"}


def write(nodes: ExportRows, edges: ExportRows, target: Counting) -> Counts:
    """Write the graph."""
    target.write(b'{"directed":true,"multigraph":true,"graph":{},"nodes":[')
    _write_objects(nodes, target)
    target.write(b'],"edges":[')
    _write_objects(edges, target)
    target.write(b"]}\n")
    return Counts(nodes.count, edges.count)


def _write_objects(rows: ExportRows, target: Counting) -> None:
    encoder = msgspec.json.Encoder()
    names = [NAMES.get(column.name, column.name) for column in rows.columns]
    fields = [*((name, Any, None) for name in names), ("props", Any, None)]
    made = msgspec.defstruct("Item", fields, omit_defaults=True, gc=False)
    separator = b"\n"
    for batch in rows:
        if batch:
            target.write(separator + b",\n".join(encoder.encode(made(*row)) for row in batch))
            separator = b",\n"
