"""Two CSV files for Neo4j's importer, and how to call it.

    nodes.csv     repo_id,node_id:ID,:LABEL,subkind,...,bstart:long,...
    edges.csv     repo_id,:TYPE,:START_ID,:END_ID,repeat:int,role,ordinal:int,...,edge_id
    README.txt    the command

Every text is quoted, with quotes doubled; null is nothing at all, which is not the empty text `""`. A value
may hold line ends, for which the importer needs an option. No value is changed, whatever a spreadsheet
would make of it.

Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from codeanatomy.query.export.rows import Counts, ExportRows

SPECIAL = {
    "node_id": "node_id:ID",
    "node_kind": ":LABEL",
    "edge_kind": ":TYPE",
    "src_node_id": ":START_ID",
    "dst_node_id": ":END_ID",
}
TYPES = {"string": "", "int": ":int", "bigint": ":long", "double": ":double", "boolean": ":boolean"}
NAMES = ("nodes.csv", "edges.csv", "README.txt")
README = """\
A code property graph for Neo4j. In this folder, with the database stopped or not there yet:

neo4j-admin database import full --nodes=nodes.csv --relationships=edges.csv --multiline-fields=true neo4j

Labels are kinds of nodes and types are kinds of edges, as docs/kinds.md of CodeAnatomy explains them:

MATCH (f:FUNCTION)-[:CALL_GRAPH]->(g:FUNCTION) RETURN f.qualname, g.qualname LIMIT 20
"""


def write(nodes: ExportRows, edges: ExportRows, target: Path) -> Counts:
    """Write the files of the graph into a folder."""
    for name, rows in zip(NAMES, (nodes, edges), strict=False):
        with (target / name).open("w", encoding="utf-8", newline="", buffering=1 << 20) as file:
            header = [
                SPECIAL.get(column.name, column.name + TYPES[column.type]) for column in rows.flat_columns
            ]
            file.write(",".join(header) + "\n")
            cells = [_quoted if column.type == "string" else _plain for column in rows.flat_columns]
            for batch in rows:
                file.writelines(_line(cells, row) for row in rows.flat(batch))
    (target / NAMES[-1]).write_text(README, encoding="utf-8")
    return Counts(nodes.count, edges.count)


def _line(cells: Sequence[Callable[[Any], str]], row: tuple[Any, ...]) -> str:
    return (
        ",".join(["" if value is None else cell(value) for cell, value in zip(cells, row, strict=True)])
        + "\n"
    )


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _plain(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
