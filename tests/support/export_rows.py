"""Rows of nodes and edges to export, and names that have to be escaped in some format."""

from __future__ import annotations

from typing import Any

from codeanatomy.query.export.rows import EDGES, NODES

# Names that would end a text, a tag, a line or a cell where it is not escaped.
HOSTILE = (
    "quotes \" and ' and `",
    "</text><script>alert(1)</script>",
    "]]> <!-- &lt; &amp; -->",
    "back\\slash at the end \\",
    "line\nfeed\r\nand\ttab",
    "nul \x00 and bell \x07 and escape \x1b[31m",
    "=1+1;@cmd|' /C calc'!A0",
    ",;|\n",
    "",
    "naïve ﷽ 🐍 \u202e turned",
    "{y} %s {0} $(rm)",
    '\\"] ; evil -> good [label="',
)


def node_row(key: str, name: str | None, props: dict[str, Any] | None = None, **more: Any) -> tuple[Any, ...]:
    known = {"repo_id": "r", "node_id": key, "node_kind": "FUNCTION", "name": name, **more}
    return (*(known.get(column.name) for column in NODES), props)


def edge_row(key: str, source: str, target: str, **more: Any) -> tuple[Any, ...]:
    known = {"repo_id": "r", "edge_id": key, "edge_kind": "CALL_GRAPH", "src_node_id": source, **more}
    known |= {"dst_node_id": target, "origin": "calls", "confidence": 0.9, "rule_name": "call_graph"}
    return (*(known.get(column.name) for column in EDGES), None)
