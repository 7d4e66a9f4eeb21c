"""JSON Lines: an object for each node, then one for each edge.

    {"entity":"node","repo_id":"shop","node_id":"class:...","node_kind":"CLASS","name":"Cart",...}
    {"entity":"edge","repo_id":"shop","edge_kind":"CONTAINS","src_node_id":...,"edge_id":"CONTAINS;..."}

Keys are the columns of `cpg_nodes` and `cpg_edges`; what is null is left out. Properties are an object of
their own, `props`. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from codeanatomy.query.export.rows import Counting, Counts, ExportRows


def write(nodes: ExportRows, edges: ExportRows, target: Counting) -> Counts:
    """Write the graph."""
    encoder = msgspec.json.Encoder()
    for entity, rows in (("node", nodes), ("edge", edges)):
        # A struct is made and encoded several times as fast as a dictionary.
        fields = [*((column.name, Any, None) for column in rows.columns), ("props", Any, None)]
        line = msgspec.defstruct("Line", fields, tag_field="entity", tag=entity, omit_defaults=True, gc=False)
        for batch in rows:
            target.write(encoder.encode_lines([line(*row) for row in batch]))
    return Counts(nodes.count, edges.count)
