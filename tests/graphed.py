"""The graph of sources that a test has at hand, without Spark: every stage as pure functions.

graph = graph_of({"main.py": "def f(): ...\\nf()\\n"})
[node for node in graph.nodes if node["node_kind"] == "FUNCTION"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import values
from codeanatomy.catalog.kinds import Profile
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.extract.files import file_id
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.extract.tree_sitter_files import tree_sitter_files_v1
from codeanatomy.graph.files import NESTED, READS, File
from codeanatomy.graph.merging import merged
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP, file_rows
from codeanatomy.normalize.files import File as Normalized
from codeanatomy.normalize.rules import file_rows as normalized_rows
from codeanatomy.relate.repository import repository_rows
from codeanatomy.relate.summary import Witnessed, summary
from normalized import OPTIONS, source_of

WITNESSES = {
    "ast_files_v1": ast_files_v1,
    "bytecode_files_v1": bytecode_files_v1,
    "libcst_files_v1": libcst_files_v1,
    "symtable_files_v1": symtable_files_v1,
    "tree_sitter_files_v1": tree_sitter_files_v1,
}


class Graph(NamedTuple):
    """Rows of the graph's tables."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    props: list[dict[str, Any]]
    props_map: list[dict[str, Any]]


def graph_of(
    sources: Mapping[str, str | bytes],
    profile: Profile = "full",
    scip: Mapping[str, Mapping[str, Any]] | None = None,
    repo_id: str = "test",
) -> Graph:
    """The graph of a repository; `scip` has the lists of an index by path."""
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in (NODES, EDGES, PROPS, PROPS_MAP)}
    shared: list[dict[str, pa.RecordBatch]] = []
    for file in graph_files(sources, scip or {}, repo_id):
        made = file_rows(file, profile)
        for name, found in made.tables.items():
            batches[name].append(found)
        shared.append(made.shared)
    for name, found in merged(shared).items():
        batches[name].append(found)
    return Graph(*(_rows(batches[name]) for name in (NODES, EDGES, PROPS, PROPS_MAP)))


def graph_files(
    sources: Mapping[str, str | bytes], scip: Mapping[str, Mapping[str, Any]], repo_id: str
) -> list[File]:
    """Files as the graph stage sees them."""
    said = {path: _witnessed(path, text) for path, text in sources.items()}
    programs = []
    for path, told in said.items():
        names = ("ast_files_v1", "symtable_files_v1", "libcst_files_v1")
        occurrences = scip.get(path, {})
        witnessed = Witnessed(
            repo_id, file_id(repo_id, path), path, *(told[name] for name in names), scip=occurrences
        )
        programs.append(summary(witnessed))
    related = {program.path: tables for program, tables in repository_rows(programs)}
    files = []
    for path, told in said.items():
        normal = Normalized(
            repo_id,
            file_id(repo_id, path),
            path,
            *(told[name] for name in ("ast_files_v1", "libcst_files_v1", "bytecode_files_v1")),
        )
        flat = {name: [rows] for name, rows in normalized_rows(normal).items()}
        for name, rows in related[path].items():
            flat.setdefault(name, []).append(rows)
        tables = {**told, "scip_index_v1": scip.get(path, {})}
        tables |= {name: _columns(rows) for name, rows in flat.items() if name in READS}
        files.append(File(repo_id, file_id(repo_id, path), path, tables))
    return files


def _witnessed(path: str, text: str | bytes) -> dict[str, Any]:
    source = source_of(text, path)
    raw = text if isinstance(text, bytes) else text.encode()
    row = {"size_bytes": len(raw), "encoding": source.encoding, "is_stub": path.endswith(".pyi")}
    told: dict[str, Any] = {name: witness(source, OPTIONS).cells for name, witness in WITNESSES.items()}
    return {"repo_files_v1": row, **told}


def _columns(batches: Iterable[pa.RecordBatch]) -> dict[str, list[Any]]:
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    return {name: values(table.column(name).combine_chunks()) for name in table.column_names}


def _rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


assert NESTED <= {table.name for table in catalog.TABLES}
