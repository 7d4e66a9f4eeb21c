"""DOT, for Graphviz.

    "class:..." [label="shop.cart.Cart", kind="CLASS", tooltip="shop/cart.py:4"];
    "module:..." -> "class:..." [label="CONTAINS"];

`dot -Tsvg graph.dot` draws some hundred nodes, `sfdp` some thousand. Labels are cut, since Graphviz cannot
read very long texts. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from codeanatomy.query.answers import place
from codeanatomy.query.export.escaping import in_a_line, shortened
from codeanatomy.query.export.rows import Counting, Counts, ExportRows, place_of

LONGEST = 200


def write(nodes: ExportRows, edges: ExportRows, target: Counting) -> Counts:
    """Write the graph."""
    target.write(b"digraph codeanatomy {\n  rankdir=LR;\n  node [shape=box];\n")
    key, kind, path, line, name, qualname = place_of(
        nodes.columns, "node_id", "node_kind", "path", "line", "name", "qualname"
    )
    for batch in nodes:
        lines = []
        for row in batch:
            where = place(row[path], row[line])
            label = _quoted(row[qualname] or row[name] or where or row[kind])
            more = f"kind={_quoted(row[kind])}, tooltip={_quoted(where)}"
            lines.append(f"  {_quoted(row[key])} [label={label}, {more}];\n")
        target.write("".join(lines).encode())
    kind, source, destination = place_of(edges.columns, "edge_kind", "src_node_id", "dst_node_id")
    for batch in edges:
        target.write(
            "".join(
                f"  {_quoted(row[source])} -> {_quoted(row[destination])} [label={_quoted(row[kind])}];\n"
                for row in batch
            ).encode()
        )
    target.write(b"}\n")
    return Counts(nodes.count, edges.count)


def _quoted(text: str) -> str:
    """Quote a text; Graphviz would interpret entities and backslashes in it."""
    plain = in_a_line(shortened(text, LONGEST)).replace("&", "&amp;")
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
