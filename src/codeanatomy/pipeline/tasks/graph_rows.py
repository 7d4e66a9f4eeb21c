"""Carry rows of the graph: to data files where they are made, or as pieces to where tables are sorted.

    rows = GraphOutput("shop", "0001", written=())
    rows.add(graph.tables, "shop/cart.py")        # tables of a file
    yield from rows.pieces()                      # and a sample of keys, by which tables are divided

What the rows of resolution need of a file goes with them, by chunk: its facts, and nodes without the name of
their module. Tests: `tests/unit/pipeline/test_graph_stage.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import pack_rows
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.tables.extract import DELIBERATE_SKIPS
from codeanatomy.costs import Costs
from codeanatomy.file_view import FileView
from codeanatomy.graph.facts import KeptFacts
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, PROPS, PROPS_MAP, TABLES, FileGraph, GraphBuilder
from codeanatomy.pipeline.executors.sorted_tables import sample_rows
from codeanatomy.pipeline.key_collisions import owner_rows, pack_keys
from codeanatomy.pipeline.tasks.chunks import chunk_name
from codeanatomy.pipeline.tasks.pieces import KEY_OWNERS, KEYS, Piece, Pieces, cut, row_pieces, sample_piece
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.steps import GRAPH

# Pieces of what resolution needs of files: facts, and nodes that lack the name of their module.
FACTS, NAMED = "file facts", "named nodes"
FACTS_SCHEMA = pa.schema({"file_id": pa.string(), "facts": pa.binary()})
# Copies of the edges in another order.
COPIES = {"cpg_edges_by_src": EDGES, "cpg_edges_by_dst": EDGES}
# By table: the name of its pieces.
GRAPH_PIECES = {**{name: name for name in (*TABLES, SHARED)}, **COPIES}
# By table: columns that rows are sorted by which are not in the order of files.
SAMPLED = {
    EDGES: tuple(dict.fromkeys(key for copy in COPIES for key in catalog.table(copy).ordering)),
    **{name: catalog.table(name).ordering for name in (PROPS, PROPS_MAP)},
}
# Name among the costs.
ROWS_OF_FILES = "rows_of_files"


def tables_with(name: str) -> tuple[str, ...]:
    """Return the tables that have the rows of a table of the graph.

    >>> tables_with("cpg_edges"), tables_with("cpg_nodes")
    (('cpg_edges', 'cpg_edges_by_src', 'cpg_edges_by_dst'), ('cpg_nodes',))
    """
    return (name, *(copy for copy, origin in COPIES.items() if origin == name))


class GraphOutput:
    """The rows of the graph's tables that a task makes of files of a repository."""

    def __init__(self, repo_id: str, chunk: str, written: Collection[str]) -> None:
        self._repo_id = repo_id
        self._chunk = chunk
        self._written = written
        # Rows of tables that are written where they are made; of the others, but for edges; pieces of edges.
        self.tables: dict[str, list[pa.RecordBatch]] = {}
        self._parts: dict[str, list[pa.RecordBatch]] = {}
        self._edges: list[Piece] = []
        self._samples: list[pa.RecordBatch] = []
        self._first = ""
        self.counts: Counter[str] = Counter()

    def add(self, tables: Mapping[str, pa.RecordBatch], file: KeptFacts) -> None:
        """Add rows of a file; files come in the order of their ids."""
        self._first = self._first or file.file_id
        for name, rows in tables.items():
            targets = tables_with(name)
            self.counts.update(dict.fromkeys(targets, rows.num_rows))
            if not rows.num_rows:
                continue
            if name in self._written:
                for target in targets:
                    self.tables.setdefault(target, []).append(rows)
            elif name == EDGES:
                # The order of the edges is that of paths.
                self._edges += row_pieces(self._repo_id, self._chunk, EDGES, rows, file.path)
                self._samples.append(sample_rows(rows, SAMPLED[EDGES]))
            else:
                self._parts.setdefault(name, []).append(rows)

    def pieces(self) -> Pieces:
        """Yield the rows that are not written here, in the order of files, and samples of their keys."""
        yield from self._edges
        if self._samples:
            yield sample_piece(EDGES, pa.concat_batches(self._samples))
        for name, batches in self._parts.items():
            whole = pa.concat_batches(batches)
            yield from row_pieces(self._repo_id, self._chunk, name, whole, self._first)
            if name in SAMPLED:
                yield sample_piece(name, sample_rows(whole, SAMPLED[name]))


class FileGraphs:
    """The rows of files that need no other file, which are made one file after the other."""

    def __init__(self, profile: Profile, output: GraphOutput, costs: Costs) -> None:
        self._builder = GraphBuilder(profile)
        self._output = output
        self._costs = costs
        self._files: list[FileGraph] = []

    def add(self, view: FileView, failure: str | None = None) -> None:
        """Make the rows of a file, if it has a graph; `failure` is why one has no evidence here."""
        if has_graph(view):
            with self._costs.timed(GRAPH, ROWS_OF_FILES):
                self._take(self._builder.add(view, failure))

    def finish(self) -> list[FileGraph]:
        """Return the graphs of all files, without the rows that the output has."""
        with self._costs.timed(GRAPH, ROWS_OF_FILES):
            self._take(self._builder.finish())
        return self._files

    def _take(self, graphs: Sequence[FileGraph]) -> None:
        for each in graphs:
            self._output.add(each.tables, each.facts)
            self._files.append(each._replace(tables={}))


def key_pieces(repo_id: str, chunk: str, files: Sequence[FileGraph]) -> Pieces:
    """Yield the definition keys of files, and the definitions that have them."""
    keys = [(each.facts.path, each.keys) for each in files]
    yield from row_pieces(repo_id, chunk, KEY_OWNERS, owner_rows(repo_id, keys))
    yield Piece(repo_id, chunk, "", KEYS, 0, 1, pack_keys(keys))


def handed_over(repo_id: str, files: Sequence[FileGraph], chunks: int) -> Pieces:
    """Yield what the rows of resolution need of files, in their chunks."""
    members: dict[str, list[FileGraph]] = {}
    for each in files:
        members.setdefault(chunk_name(each.facts.file_id, chunks), []).append(each)
    for chunk, own in members.items():
        first = own[0].facts.file_id
        columns = [[each.facts.file_id for each in own], [each.facts.pack() for each in own]]
        arrays = [pa.array(cells, field.type) for cells, field in zip(columns, FACTS_SCHEMA, strict=True)]
        facts = pa.RecordBatch.from_arrays(arrays, schema=FACTS_SCHEMA)
        yield from cut(repo_id, chunk, FACTS, pack_rows(facts), first)
        nodes = pa.concat_batches([each.named for each in own])
        yield from cut(repo_id, chunk, NAMED, pack_rows(nodes), first)


def has_graph(view: FileView) -> bool:
    """Return whether a file has a graph: all but those that were left out on purpose."""
    row = view.row(FILES)
    return bool(row) and row["skipped_reason"] not in DELIBERATE_SKIPS


def file_facts(batches: Iterable[pa.RecordBatch]) -> Iterator[KeptFacts]:
    """Yield the facts of files that pieces have."""
    for rows in batches:
        yield from map(KeptFacts.unpack, rows.column("facts").to_pylist())
