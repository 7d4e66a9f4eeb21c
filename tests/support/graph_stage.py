"""Build the graph of sources in memory, without Spark: every stage as pure functions.

graph = graph_of({"main.py": "def f(): ...\\nf()\\n"})
[node for node in graph.nodes if node["node_kind"] == "FUNCTION"]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema, to_python
from codeanatomy.catalog.entry_points import RULES, Rule
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.tables.graph import EDGE_KEY
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.extract.tree_sitter_files import tree_sitter_files_v1
from codeanatomy.file_view import AST, BYTECODE, LIBCST, LINES, SCIP, FileView
from codeanatomy.graph.facts import KeptFacts
from codeanatomy.graph.merge import merge_shared_rows
from codeanatomy.graph.reads import READS
from codeanatomy.graph.resolution import ResolvedFile, complete_names
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP, FileGraph, resolution_rows, rows_of_files
from codeanatomy.graph.table_rows import sort_rows
from codeanatomy.node_ids import edge_id, file_id
from codeanatomy.normalize.rules import file_rows as normalized_rows
from codeanatomy.relate.compile.file_program import compile_file, with_witnesses
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS
from support.normalize_stage import OPTIONS, source_of
from support.relate_stage import repository_rows

WITNESSES = {
    "ast_files_v1": ast_files_v1,
    "bytecode_files_v1": bytecode_files_v1,
    "libcst_files_v1": libcst_files_v1,
    "symtable_files_v1": symtable_files_v1,
    "tree_sitter_files_v1": tree_sitter_files_v1,
}

# Tables of which the rules see rows: the others would report the same problems as `_diagnostics`.
NORMALIZED = (AST, LIBCST, BYTECODE, LINES)
COMPLAINTS = {
    "ast_files_v1": "cpython",
    "symtable_files_v1": "cpython",
    "bytecode_files_v1": "cpython",
    "libcst_files_v1": "libcst",
    "tree_sitter_files_v1": "tree_sitter",
}


class FileRows(NamedTuple):
    """All graph rows of a file by table: its own, and those it contributes to the repository."""

    tables: dict[str, pa.RecordBatch]
    shared: dict[str, pa.RecordBatch]
    # Definition keys of the file by qualified path.
    keys: dict[str, str]


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
    for made in whole_graphs(graph_files(sources, scip or {}, repo_id), profile):
        for name, found in made.tables.items():
            batches[name].append(found)
        shared.append(made.shared)
    for name, found in merge_shared_rows(shared).items():
        batches[name].append(found)
    return Graph(*(rows_of(name, batches[name]) for name in (NODES, EDGES, PROPS, PROPS_MAP)))


def whole_graph(file: FileView, profile: Profile = "full") -> FileRows:
    """Make all graph rows of a file that has its relations."""
    [rows] = whole_graphs([file], profile)
    return rows


def whole_graphs(
    files: Iterable[FileView], profile: Profile = "full", rules: tuple[Rule, ...] = RULES
) -> Iterator[FileRows]:
    """Yield all graph rows of files that have their relations, each table in its order.

    As in a build, the facts that the second of the two stages gets of the first are packed in between.
    """
    files = list(files)
    graphs = list(rows_of_files(files, profile))
    resolved = [resolved_file(file, graph.facts) for file, graph in zip(files, graphs, strict=True)]
    for file, graph, rest in zip(resolved, graphs, resolution_rows(resolved, profile, rules), strict=True):
        own = {**graph.tables, NODES: nodes_of(graph, file.module_name)}
        tables = {name: sort_rows(name, pa.concat_batches([own[name], rest.tables[name]])) for name in own}
        yield FileRows(tables, rest.shared, graph.keys)


def nodes_of(graph: FileGraph, module_name: str) -> pa.RecordBatch:
    """Return the nodes of a file that were made without others, with their full names."""
    named = complete_names(graph.named, {graph.facts.file_id: module_name})
    return pa.concat_batches([graph.tables[NODES], named])


def resolved_file(file: FileView, facts: KeptFacts) -> ResolvedFile:
    """Return the facts of a file with its relations and their diagnostics."""
    return ResolvedFile(KeptFacts.unpack(facts.pack()), file.rows(RELATIONS), file.rows(DIAGNOSTICS))


def graph_files(
    sources: Mapping[str, str | bytes], scip: Mapping[str, Mapping[str, Any]], repo_id: str
) -> list[FileView]:
    """Files as the graph stage sees them."""
    extracted = {path: _extract(path, text) for path, text in sources.items()}
    evidence = {
        path: {"repo_files_v1": _row(path, sources[path])}
        # A row has the columns of the file, even if nothing was extracted.
        | {name: {"path": path, **one.cells} for name, one in results.items()}
        for path, results in extracted.items()
    }
    documents = {path: [{"index_id": "index:1", **lists}] for path, lists in scip.items()}
    files = []
    programs = []
    for path, rows in evidence.items():
        tables = {**rows, LINES: _lines(path, sources[path])}
        file = FileView(repo_id, file_id(repo_id, path), path, tables)
        files.append(file)
        programs.append(with_witnesses(compile_file(file), documents.get(path, ()), None))
    related = {program.path: tables for program, tables in repository_rows(programs)}
    return [_graph_file(file, extracted[file.path], related[file.path], documents) for file in files]


def _graph_file(
    file: FileView,
    extracted: Mapping[str, ExtractorResult],
    related: Mapping[str, pa.RecordBatch],
    documents: Mapping[str, Sequence[Mapping[str, Any]]],
) -> FileView:
    """Add normalized rows and relations to a file."""
    witnesses = {name: rows for name, rows in file.tables.items() if name in NORMALIZED}
    normal = FileView(file.repo_id, file.file_id, file.path, witnesses)
    flat = {name: [rows] for name, rows in normalized_rows(normal).items()}
    for name, rows in related.items():
        flat.setdefault(name, []).append(rows)
    flat["diagnostics_norm_v1"].append(_diagnostics(normal, extracted))
    tables = {**file.tables, SCIP: documents.get(file.path, ())}
    tables |= {name: _columns(rows) for name, rows in flat.items() if name in READS}
    return FileView(file.repo_id, file.file_id, file.path, tables)


def _extract(path: str, text: str | bytes) -> dict[str, ExtractorResult]:
    source = source_of(text, path)
    return {name: witness(source, OPTIONS) for name, witness in WITNESSES.items()}


def _row(path: str, text: str | bytes) -> dict[str, Any]:
    source = source_of(text, path)
    return {
        "file_sha256": sha256(source.raw).hexdigest(),
        "size_bytes": len(source.raw),
        "encoding": source.encoding,
        "newline": source.newline,
        "is_stub": path.endswith(".pyi"),
    }


def _diagnostics(file: FileView, cells: Mapping[str, ExtractorResult]) -> pa.RecordBatch:
    """Return the problems that extractors report; in a build, Spark makes these rows and more."""
    table = catalog.table("diagnostics_norm_v1")
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for name, kind in COMPLAINTS.items():
        for problem in cells[name].problems:
            code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", problem.error_type).lower()
            place = (problem.bstart, problem.bend, problem.line)
            found[kind, code, *place, problem.message] = {
                "diag_kind": kind,
                "diag_severity": problem.severity,
                "diag_code": code,
                "diag_line_start": problem.line,
                "bstart": problem.bstart,
                "bend": problem.bend,
                "message": problem.message,
            }
    rows = list(found.values())
    ids = file.ids.diagnostics(
        [(row["diag_kind"], row["diag_code"], row["bstart"], row["bend"]) for row in rows]
    )
    for row, diag_id in zip(rows, ids, strict=True):
        row["diag_id"] = diag_id
    arrays = [array(column, [row.get(column.name) for row in rows]) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


def _columns(batches: Iterable[pa.RecordBatch]) -> dict[str, list[Any]]:
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    return {name: to_python(table.column(name).combine_chunks()) for name in table.column_names}


def rows_of(name: str, batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """The rows of a table, with its derived columns."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    for row in rows if name == EDGES else ():
        row["edge_id"] = edge_id(*(row[part] for part in EDGE_KEY))
    return rows


def _lines(path: str, given: str | bytes) -> dict[str, Any]:
    """The line index of a source."""
    lines = list(source_of(given, path).lines())
    return {
        "line_no": range(len(lines)),
        "line_start_byte": [start for start, _, _ in lines],
        "line_end_byte": [end for _, end, _ in lines],
        "newline_kind": [kind for _, _, kind in lines],
    }
