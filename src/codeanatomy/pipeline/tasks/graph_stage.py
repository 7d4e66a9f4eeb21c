"""Map over chunks of files with their relations: the rows of the graph that other files decide.

    work = GraphStage(frozenset(), frozenset({"requests"}), "default", sink)
    work(groups)                  # pieces: rows of nodes, edges and properties, counts
    MergeShared(frozenset({"requests"}))(groups)          # a group per repository: rows of no single file

Of a file that this build has parsed, there are its facts. Of others there is evidence from pinned tables, and
all of their rows are made here. Where a repository has a SCIP index, its files are normalized here too,
because documents of the index are evidence, and the index is made beside the pass over files.
Tests: `tests/unit/pipeline/test_graph_stage.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, json, msgpack, structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.entry_points import RULES, Rule
from codeanatomy.catalog.kinds import Profile
from codeanatomy.costs import Costs
from codeanatomy.file_view import Columns, FileView, Reads, load_views, union_reads
from codeanatomy.graph.merge import COLUMNS as CONTRIBUTED
from codeanatomy.graph.merge import SHARED, merge_shared_rows, shared_row, unpack_shared_rows
from codeanatomy.graph.reads import reads as graph_reads
from codeanatomy.graph.resolution import ResolvedFile, complete_names
from codeanatomy.graph.rows import NODES, TABLES, resolution_rows
from codeanatomy.graph.table_rows import sort_files
from codeanatomy.normalize.rules import READS as NORMALIZE_READS
from codeanatomy.normalize.rules import chunk_rows, file_columns
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.chunks import file_ids_of
from codeanatomy.pipeline.tasks.graph_rows import (
    COPIES,
    FACTS,
    NAMED,
    FileGraphs,
    GraphOutput,
    file_facts,
    key_pieces,
    tables_with,
)
from codeanatomy.pipeline.tasks.impact import BEFORE, file_impact
from codeanatomy.pipeline.tasks.pieces import (
    CONTRIBUTIONS,
    MB,
    OUTCOME,
    SHARED_DIGESTS,
    STORED,
    Piece,
    Pieces,
    batches_of,
    counts_piece,
    row_pieces,
)
from codeanatomy.pipeline.tasks.sinks import OpenSink, Sink
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.steps import GRAPH
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS

# Names among the costs.
LOAD, RESOLVE, MERGE = "load_views", "resolution_rows", "merge_shared_rows"
# Arrow bytes of files that are worked on together.
MOST_BYTES = 64 * MB

# Rows by table.
Batches: TypeAlias = Mapping[str, Sequence[pa.RecordBatch]]


class GraphStage(Struct, frozen=True):
    """What is done with the files of a chunk when the relations of their repository are known."""

    frame_name: ClassVar[str] = "graph rows"

    # Repositories whose files are normalized here, and those whose graph is made.
    normalized: frozenset[str]
    graphed: frozenset[str]
    profile: Profile
    sink: Sink
    # By which definitions are entry points.
    rules: tuple[Rule, ...] = RULES
    # Files of a refresh that were not edited and have other relations, which is explained here.
    explained: frozenset[str] = frozenset()

    @property
    def reads(self) -> Reads:
        """What is read of the files whose rows were not made where they were parsed."""
        reads = graph_reads(self.profile) if self.graphed else {}
        return union_reads(reads, NORMALIZE_READS) if self.normalized else reads

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Work on chunks of files."""
        # No rule makes cycles, and looking for them among millions of values takes long.
        gc.disable()
        try:
            sink = self.sink.open()
            for group in groups:
                batches = batches_of(group.pieces)
                before = {BEFORE: batches.pop(BEFORE, [])}
                yield from file_impact(
                    group, before | {RELATIONS: batches.get(RELATIONS, [])}, self.explained
                )
                # Of few files, whose rows need no other file: they are written with the others.
                for name in TABLES:
                    for rows in batches.pop(name, ()):
                        for table in tables_with(name):
                            sink.add(table, rows)
                for part in parts_of(batches):
                    yield from self._work_on(group, part, sink)
            yield from sink.close()
        finally:
            gc.enable()

    def _work_on(self, group: Group, batches: Batches, sink: OpenSink) -> Pieces:
        costs = Costs()
        facts, named = list(file_facts(batches.get(FACTS, ()))), list(batches.get(NAMED, ()))
        with costs.timed(GRAPH, LOAD):
            views = load_views(batches, self.reads)
        known = {each.file_id for each in facts}
        files = [views[file_id] for file_id in sorted(views) if file_id not in known]
        if group.repo_id in self.normalized:
            # Of tools there are rows about all files of the repository.
            normalized = [file_columns(view, costs=costs) for view in files if _is_normalized(view)]
            made = chunk_rows(normalized, costs)
            for name, each in made.items():
                sink.add(name, each)
            yield counts_piece({group.repo_id: {name: each.num_rows for name, each in made.items()}})
            rows = {name: [each] for name, each in made.items()}
            files = with_tables(files, load_views(rows, self.reads))
        if group.repo_id in self.graphed:
            output = GraphOutput(group.repo_id, group.chunk, self.sink.targets)
            graphs = FileGraphs(self.profile, output, costs)
            for view in files:
                graphs.add(view)
            made_here = graphs.finish()
            yield from key_pieces(group.repo_id, group.chunk, made_here)
            facts = sorted((*facts, *(each.facts for each in made_here)), key=lambda each: each.file_id)
            named += [each.named for each in made_here]
            resolved = [
                ResolvedFile(
                    each, *(_rows_of(views, each.file_id, name) for name in (RELATIONS, DIAGNOSTICS))
                )
                for each in facts
            ]
            yield from self._resolve(group, resolved, named, output, costs)
            for name, batches_of_table in output.tables.items():
                for rows_of_file in batches_of_table:
                    sink.add(name, rows_of_file)
            yield from output.pieces()
            yield counts_piece({group.repo_id: output.counts})
        yield counts_piece({group.repo_id: costs.counters()})

    def _resolve(
        self,
        group: Group,
        files: Sequence[ResolvedFile],
        named: Sequence[pa.RecordBatch],
        output: GraphOutput,
        costs: Costs,
    ) -> Pieces:
        """Add the rows that other files decide, with the nodes that get the names of their modules."""
        if not files:
            return
        digests: dict[str, str] = {}
        contributions: list[pa.RecordBatch] = []
        nodes = complete_names(
            pa.concat_batches(named), {each.facts.file_id: each.module_name for each in files}
        )
        # One conversion for all files, and one sort: they are few rows.
        made = list(costs.timed_items(GRAPH, RESOLVE, resolution_rows(files, self.profile, self.rules)))
        nodes = pa.concat_batches([nodes, *(rows.tables[NODES] for rows in made)])
        nodes_of = sort_files(NODES, nodes, [file.facts.file_id for file in files])
        for file, rows, own in zip(files, made, nodes_of, strict=True):
            shared = shared_row(file.facts, rows.shared)
            digests |= shared_digests(shared)
            contributions.append(shared)
            output.add({**rows.tables, NODES: own, SHARED: shared}, file.facts)
            output.counts["graph_files"] += 1
        # For the merge, also where the table is written here.
        yield from row_pieces(group.repo_id, group.chunk, CONTRIBUTIONS, pa.concat_batches(contributions))
        yield Piece(group.repo_id, group.chunk, "", SHARED_DIGESTS, 0, 1, json.encode(digests))


def _rows_of(views: Mapping[str, FileView], file_id: str, table: str) -> Columns:
    return views[file_id].rows(table) if file_id in views else {}


def _is_normalized(view: FileView) -> bool:
    return bool(view.row(FILES)) or any(document["is_missing"] for document in view.documents)


def parts_of(batches: Batches) -> Iterator[Batches]:
    """Divide the rows of a chunk by file if they are many: Python objects of large files fill the memory."""
    if sum(rows.nbytes for parts in batches.values() for rows in parts) <= MOST_BYTES:
        yield batches
        return
    owners = {
        name: [
            rows.column("file_id") if name in (FACTS, NAMED) else file_ids_of(name, rows) for rows in parts
        ]
        for name, parts in batches.items()
    }
    files = {each for parts in owners.values() for part in parts for each in part.unique().to_pylist()}
    # A view has rows of a file only.
    for file_id in sorted(files - {None}):
        yield {
            name: [rows.filter(pc.equal(own, file_id)) for rows, own in zip(parts, owners[name], strict=True)]
            for name, parts in batches.items()
        }


def with_tables(files: Sequence[FileView], added: Mapping[str, FileView]) -> list[FileView]:
    """Return files with further tables."""
    return [
        structs.replace(view, tables={**view.tables, **added[view.file_id].tables})
        if view.file_id in added
        else view
        for view in files
    ]


def with_copies(counts: Mapping[str, int]) -> dict[str, int]:
    """Add the counts of copies."""
    return {**counts, **{copy: counts.get(name, 0) for copy, name in COPIES.items()}}


class MergeShared(Struct, frozen=True):
    """Merge what the files of repositories contribute to nodes, edges and properties of no file."""

    frame_name: ClassVar[str] = "shared rows"

    repositories: frozenset[str]
    # Files whose stored contribution is replaced; None: nothing is stored.
    replaced: frozenset[str] | None = None

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Merge repositories; after an edit only the tables whose rows differ from the stored ones."""
        for group in (group for group in groups if group.repo_id in self.repositories):
            costs = Costs()
            batches = batches_of(group.pieces)
            kept = [self._kept(rows) for rows in batches.get(STORED + SHARED, ())]
            contributions = [*batches.get(CONTRIBUTIONS, ()), *kept]
            with costs.timed(GRAPH, MERGE):
                merged = merge_shared_rows(
                    part for rows in contributions for part in unpack_shared_rows(rows)
                )
                if self.replaced is not None:
                    merged = {name: rows for name, rows in merged.items() if _differ(name, rows, batches)}
            for name, rows in merged.items():
                # Without a file: before the rows of all files.
                yield from row_pieces(group.repo_id, "", name, rows, "")
            changed = msgpack.encode(sorted(merged))
            yield Piece(group.repo_id, "", "", OUTCOME, 0, 1, changed)
            counts = {name: rows.num_rows for name, rows in merged.items()}
            yield counts_piece({group.repo_id: {**with_copies(counts), **costs.counters()}})

    def _kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        replaced = pa.array(sorted(self.replaced or ()), pa.string())
        return rows.filter(pc.invert(pc.is_in(rows.column("file_id"), value_set=replaced)))


def shared_digests(rows: pa.RecordBatch | pa.Table) -> dict[str, str]:
    """Return a digest of what each file contributes to rows of no file: equal rows have equal bytes."""
    columns = (rows.column(name).to_pylist() for name in ("file_id", *CONTRIBUTED.values()))
    return {
        file_id: blake2b(b"".join(streams), digest_size=16).hexdigest()
        for file_id, *streams in zip(*columns, strict=True)
    }


def _differ(name: str, rows: pa.RecordBatch, batches: Batches) -> bool:
    """Return whether rows of no file differ from the stored ones."""
    schema = arrow_schema(catalog.table(name))
    now = pa.Table.from_batches([rows]).select(schema.names).cast(schema)
    before = [part.select(schema.names) for part in batches.get(STORED + name, ())]
    return not are_same(name, now, pa.Table.from_batches(before, schema))


def are_same(name: str, one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have the same rows, in whatever order."""
    if one.num_rows != other.num_rows:
        return False
    keys = [(key, "ascending") for key in catalog.table(name).primary_key]
    return bool(one.sort_by(keys).to_pylist() == other.sort_by(keys).to_pylist())
