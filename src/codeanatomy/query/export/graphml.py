"""GraphML, for yEd, Gephi, Cytoscape, igraph and networkx.

    <key id="n2" for="node" attr.name="node_kind" attr.type="string"/>
    <node id="class:..."><data key="n2">CLASS</data>...</node>
    <edge id="CONTAINS;..." source="module:..." target="class:..."><data key="e2">CONTAINS</data>...</edge>

What is null has no element. XML cannot hold control characters; they are shown by their pictures, `␀` for
NUL (`escaping`). Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from codeanatomy.query.export.escaping import xml_text
from codeanatomy.query.export.rows import Counting, Counts, ExportRows, place_of

TYPES = {"string": "string", "int": "int", "bigint": "long", "double": "double", "boolean": "boolean"}
NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


def write(nodes: ExportRows, edges: ExportRows, target: Counting) -> Counts:
    """Write the graph."""
    target.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{NAMESPACE}">\n'.encode())
    for of, rows in (("node", nodes), ("edge", edges)):
        for number, column in enumerate(rows.flat_columns):
            declared = f'attr.name="{column.name}" attr.type="{TYPES[column.type]}"'
            target.write(f'<key id="{of[0]}{number}" for="{of}" {declared}/>\n'.encode())
    target.write(b'<graph edgedefault="directed">\n')
    _write_elements(nodes, "node", {"id": "node_id"}, target)
    _write_elements(
        edges, "edge", {"id": "edge_id", "source": "src_node_id", "target": "dst_node_id"}, target
    )
    target.write(b"</graph>\n</graphml>\n")
    return Counts(nodes.count, edges.count)


def _write_elements(rows: ExportRows, element: str, attributes: dict[str, str], target: Counting) -> None:
    """Write an element for each row; its attributes are not repeated as data."""
    places = dict(zip(attributes, place_of(rows.columns, *attributes.values()), strict=True))
    data = [
        (number, f'<data key="{element[0]}{number}">')
        for number in range(len(rows.flat_columns))
        if number not in places.values()
    ]
    for batch in rows:
        lines = []
        for row in rows.flat(batch):
            named = "".join(f' {name}="{xml_text(row[place])}"' for name, place in places.items())
            inner = "".join(
                f"{opened}{_value(row[place])}</data>" for place, opened in data if row[place] is not None
            )
            lines.append(f"<{element}{named}>{inner}</{element}>\n")
        target.write("".join(lines).encode())


def _value(value: str | float | bool) -> str:
    if isinstance(value, str):
        return xml_text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)
