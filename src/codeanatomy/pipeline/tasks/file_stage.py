"""Map over files: extract, normalize and compile a file where it is read, and make its graph rows.

    work = FileStage(options, {"shop"}, {"shop"}, {"shop"}, "default", {}, {"shop": 2}, sink)
    work(task)                      # pieces: programs, facts and rows of the graph, data files, counts
    StoredFileStage(work)(groups)   # the same from rows of pinned tables, for files that are not extracted

The extractors leave Python lists, and the rules of normalize, the compiler of relate and the lists of graph
read them as they are (`file_view.fresh_view`): no table is written and read in between. All of it runs in the
child process of `extract.worker`: a file that crashes it or takes too long loses the step in which that
happens, no more. (Graph rows of stored evidence are made without a child: `pipeline.tasks.graph_stage`.)

Tests: `tests/unit/pipeline/test_file_stage.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct, msgpack, structs

from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.costs import Costs
from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FILE, FileRows
from codeanatomy.extract.partitions import FilePartition, RepositoryRoot
from codeanatomy.extract.tools.tool_tasks import CheckerTask, IndexTask
from codeanatomy.extract.worker import WORK_PARTS, ChunkResult, EnterFile, FailedParts, Task, extract_task
from codeanatomy.file_view import FileView, Reads, fresh_view, load_views, project, union_reads
from codeanatomy.graph.context import RELATIONS
from codeanatomy.normalize.rules import DIAGNOSTICS, FileColumns, chunk_rows, file_columns
from codeanatomy.normalize.rules import READS as NORMALIZE_READS
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.chunks import chunk_name, rows_by_chunk
from codeanatomy.pipeline.tasks.graph_rows import FileGraphs, GraphOutput, handed_over, key_pieces
from codeanatomy.pipeline.tasks.pieces import (
    PROGRAM,
    Piece,
    Pieces,
    batches_of,
    counts_piece,
    cut,
    task_pieces,
)
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.plan.changes import FILES, TOOL_TABLES
from codeanatomy.plan.steps import NORMALIZE, RELATE
from codeanatomy.plan.stored_sources import StoredSources
from codeanatomy.relate.compile.file_program import READS as COMPILE_READS
from codeanatomy.relate.compile.file_program import compile_with_scopes
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.sources.listing import Entry

PROGRAM_SCHEMA = pa.schema({"file_id": pa.string(), "path": pa.string(), "program": pa.binary()})
# Name of the compiler among the costs.
COMPILE = "compile_file"
# Parts of the work on a file, each of which may kill the process: rules and compiler, rows of the graph.
RULES, GRAPH_ROWS = range(WORK_PARTS)
WHOLE_CHUNK = WORK_PARTS
NO_FAILURES: FailedParts = MappingProxyType({})
# Rows by table.
Tables: TypeAlias = Mapping[str, pa.RecordBatch]


class FileStage(Struct, frozen=True):
    """What is done with a file after the extractors."""

    frame_name: ClassVar[str] = "files"

    options: ExtractOptions
    # Repositories whose files are normalized here, those whose files are compiled, and those whose graph rows
    # are made here.
    normalized: frozenset[str]
    compiled: frozenset[str]
    graphed: frozenset[str]
    profile: Profile
    # What later stages read of the tables that are made or read here.
    passed: Reads
    # Number of chunks of each repository.
    chunk_counts: Mapping[str, int]
    sink: Sink
    # Repositories in object stores: their files are fetched where the task runs.
    stored: StoredSources = StoredSources()
    # By step: the files that it works on, where these are not all that are seen here.
    selected: Mapping[str, frozenset[str]] = {}

    def __call__(self, encoded: bytes) -> Pieces:
        """Work on the files of a task."""
        task = self._fetched(msgpack.decode(encoded, type=Task))
        sink = self.sink.open()
        for packed in extract_task(task, EXTRACTORS, self.options, self.work_on_chunk):
            for name, stream in packed.streams.items():
                for batch in unpack_rows(stream):
                    sink.add(name, batch)
                    if name in TOOL_TABLES:
                        yield from self._tool_rows(packed.repo_id, name, batch)
            yield from map(Piece._make, packed.pieces)
            yield counts_piece(packed.counts)
        yield from sink.close()

    def _fetched(self, task: Task) -> Task:
        """Fetch the files of repositories in object stores; return the task with the paths of this host."""
        if isinstance(task, CheckerTask | IndexTask):
            return structs.replace(task, root=self._fetch(task.root, task.entries))
        if not isinstance(task, FilePartition):
            return task
        entries: dict[int, list[Entry]] = {}
        for number, entry in task.files:
            entries.setdefault(number, []).append(entry)
        roots = [self._fetch(root, entries.get(number, ())) for number, root in enumerate(task.roots)]
        return structs.replace(task, roots=roots)

    def _fetch(self, root: RepositoryRoot, entries: Sequence[Entry]) -> RepositoryRoot:
        return structs.replace(root, root=self.stored.fetch(root.repo_id, root.kind, root.root, entries))

    def work_on_chunk(
        self,
        files: Sequence[FileRows],
        extracted: Tables,
        failed: FailedParts,
        enter: EnterFile,
    ) -> ChunkResult:
        """Normalize and compile the files of a chunk; `failed` are parts that have killed a process here."""
        listed = [(number, rows) for number, rows in enumerate(files) if rows.get(FILES) is not None]
        views = [fresh_view(rows) for _, rows in listed]
        problems = {place: failed[number] for place, (number, _) in enumerate(listed) if number in failed}
        made = self.work_on_views(views, problems, lambda place, part: enter(listed[place][0], part))
        own = {name: rows for name, rows in extracted.items() if name not in TOOL_TABLES}
        first = files[0][FILE] if files else {}
        passed = self.passed_pieces(first.get("repo_id", ""), own, first.get("file_id") or "")
        return ChunkResult(made.tables, [*passed, *made.pieces], made.counts)

    def _tool_rows(self, repo_id: str, name: str, rows: pa.RecordBatch) -> Pieces:
        """Yield rows of a tool in the chunks of their files: it reports on files of other tasks."""
        for chunk, members in rows_by_chunk(name, rows, self.chunk_counts[repo_id]):
            yield from task_pieces(repo_id, chunk, name, members)

    def work_on_views(
        self,
        views: Sequence[FileView],
        failed: FailedParts = NO_FAILURES,
        enter: EnterFile = lambda *_: None,
    ) -> ChunkResult:
        """Normalize and compile files of one repository, and make their graph rows."""
        if not views:
            return ChunkResult({}, ())
        repo_id, first, costs = views[0].repo_id, views[0].file_id, Costs()
        normalized: list[FileColumns] = []
        programs: dict[str, list[dict[str, Any]]] = {}
        output = GraphOutput(repo_id, "", written=())
        graphs = FileGraphs(self.profile, output, costs)
        for place, view in enumerate(views):
            enter(place, RULES)
            problems = failed.get(place, {})
            problem, of_graph = problems.get(RULES), problems.get(GRAPH_ROWS)
            made: Mapping[str, Any] = {}
            if repo_id in self.normalized and self._is_selected(NORMALIZE, view):
                normalized.append(file_columns(view, problem.message if problem else None, costs))
                made = normalized[-1].tables
            # Of a file without graph rows others must not know definitions.
            rest = view if of_graph is None else view.without_evidence()
            compiled = self._compiled(rest, of_graph or problem, costs)
            if compiled is not None:
                program, _ = compiled
                chunk = chunk_name(view.file_id, self.chunk_counts[repo_id])
                programs.setdefault(chunk, []).append(
                    {"file_id": view.file_id, "path": view.path, "program": program}
                )
            if repo_id in self.graphed:
                enter(place, GRAPH_ROWS)
                scopes = {} if compiled is None else {RELATIONS: compiled[1].columns()}
                reports = made if of_graph is None else {DIAGNOSTICS: made.get(DIAGNOSTICS)}
                graphs.add(rest.with_tables({**reports, **scopes}), of_graph.message if of_graph else None)
        # If this kills the process, the files of the chunk are tried one by one.
        enter(0, WHOLE_CHUNK)
        tables = {name: rows for name, rows in chunk_rows(normalized, costs).items() if rows.num_rows}
        pieces = list(self.passed_pieces(repo_id, tables, first))
        for chunk, each in programs.items():
            data = pack_rows(pa.RecordBatch.from_pylist(each, PROGRAM_SCHEMA))
            pieces += cut(repo_id, chunk, PROGRAM, data, first)
        if repo_id in self.graphed:
            files = graphs.finish()
            pieces += [
                *output.pieces(),
                *key_pieces(repo_id, first, files),
                *handed_over(repo_id, files, self.chunk_counts[repo_id]),
            ]
        return ChunkResult(tables, pieces, {**costs.counters(), **output.counts})

    def _compiled(
        self, view: FileView, problem: Problem | None, costs: Costs
    ) -> tuple[bytes, RelationRows] | None:
        """Return the encoded program of a file and the relations of its scopes, if it is compiled here."""
        is_compiled = view.repo_id in self.compiled and self._is_selected(RELATE, view)
        if not is_compiled or not view.row("libcst_files_v1"):
            return None
        with costs.timed(RELATE, COMPILE):
            try:
                program, scopes = compile_with_scopes(view, problem.error_type if problem else None)
                return msgpack.encode(program), scopes
            # A bug of ours, or a file of an unforeseen shape, costs this program and no more: such as a text
            # in `__all__` that UTF-8 cannot encode.
            except Exception as error:  # noqa: BLE001
                program, scopes = compile_with_scopes(view, type(error).__name__)
                return msgpack.encode(program), scopes

    def _is_selected(self, step: str, view: FileView) -> bool:
        return step not in self.selected or view.file_id in self.selected[step]

    def passed_pieces(self, repo_id: str, tables: Tables, key: str) -> Pieces:
        """Yield what later stages read of rows, by chunk and table; no other rows have the key."""
        for name, rows in tables.items():
            if name in self.passed and rows.num_rows:
                projected = project(name, rows, self.passed[name])
                for chunk, members in rows_by_chunk(name, projected, self.chunk_counts[repo_id]):
                    yield from cut(repo_id, chunk, name, pack_rows(members), key)


class StoredFileStage(Struct, frozen=True):
    """Work on files whose evidence is read from pinned tables."""

    frame_name: ClassVar[str] = "stored files"

    work: FileStage

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Work on chunks of files."""
        sink, reads = self.work.sink.open(), union_reads(NORMALIZE_READS, COMPILE_READS)
        for group in groups:
            batches = batches_of(group.pieces)
            views = load_views(batches, reads)
            made = self.work.work_on_views([views[file_id] for file_id in sorted(views)])
            for name, rows in made.tables.items():
                sink.add(name, rows)
            for name, parts in batches.items():
                for rows in parts:
                    yield from self.work.passed_pieces(group.repo_id, {name: rows}, uuid4().hex)
            yield from map(Piece._make, made.pieces)
            counts = {name: rows.num_rows for name, rows in made.tables.items()}
            yield counts_piece({group.repo_id: {**counts, **made.counts}})
        yield from sink.close()
