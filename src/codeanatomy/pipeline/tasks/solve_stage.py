"""Solve repositories from the programs of their files, and emit the relations of each file.

    work = Solve({"requests": SolveScope()}, sink, processes=2)
    work(groups)       # pieces: relations for the graph, data files, counts, files with other relations

A repository is solved in one process, because what a name or a value means may depend on any of its files.
The relations are then emitted by this process and others that are forked from it, chunk by chunk. So
in a cluster a repository is solved where its programs are brought together, and repositories side by side,
the largest first.

After an edit the whole repository is solved again, over the stored programs of the files that stay. A digest
of each file's rows then shows which files have other relations than before: no rule decides beforehand what a
change can reach, so none can be wrong. Tests: `tests/unit/pipeline/test_solve_stage.py`.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, msgpack

from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.costs import Costs
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.file_view import FileView, Reads, load_views, project
from codeanatomy.graph.context import OF_SCOPES
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.executors.processes import map_after
from codeanatomy.pipeline.frontier import FileOutcome
from codeanatomy.pipeline.tasks.pieces import (
    OUTCOME,
    PROGRAM,
    Piece,
    Pieces,
    counts_piece,
    cut,
    joined,
)
from codeanatomy.pipeline.tasks.sinks import OpenSink, Sink
from codeanatomy.plan.steps import RELATE
from codeanatomy.relate.compile.file_program import WITNESS_READS, with_witnesses
from codeanatomy.relate.own_imports import OwnImports
from codeanatomy.relate.program import Program, solved_part
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import (
    PROGRAMS,
    FileRelations,
    SolvedRepository,
    program_rows,
    tables_of,
)

# Names among the costs.
DECODE, SOLVE, EMIT = "decode_programs", "solve_repository", "emit_relations"


class SolveScope(Struct, frozen=True):
    """What is known of the files of a repository before it is solved."""

    # Files that are gone, or whose stored program is replaced.
    replaced: frozenset[str] = frozenset()
    # Files whose rows are needed even if they are the same; None: of all files.
    wanted: frozenset[str] | None = None
    # Import name of the package that the root of the repository is; empty if it is none.
    package: str = ""
    # Whether later stages lack the relations of scopes: where files were read, the graph has them already.
    with_scopes: bool = True


class RepositoryOutcome(Struct, frozen=True):
    """The files of a solved repository that are emitted, and those that are gone."""

    files: list[FileOutcome]
    gone: list[str]
    total: int
    imports: OwnImports = OwnImports()


class EmittedChunk(NamedTuple):
    """Packed rows of the files of a chunk, by table."""

    chunk: str
    # Of files whose rows differ, for data files; with the programs of all.
    written: dict[str, bytes]
    # Of these and of other files that are wanted, for later stages.
    passed: dict[str, bytes]
    counts: dict[str, int]
    files: list[FileOutcome]
    # Of the repository.
    imports: OwnImports


class Solve(Struct, frozen=True):
    """The solve of repositories: relations, programs and diagnostics of their files."""

    frame_name: ClassVar[str] = "solve"

    scopes: Mapping[str, SolveScope]
    sink: Sink
    # Processes that emit relations.
    processes: int
    # What later stages read of the rows, by table; None: everything.
    passed: Reads | None = None

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Solve one repository after the other."""
        sink = self.sink.open()
        for group in groups:
            if group.repo_id in self.scopes:
                scope = self.scopes[group.repo_id]
                inputs = SolveInputs.of_pieces(group.pieces, scope)
                yield from self._emitted(group.repo_id, inputs, scope, sink)
        yield from sink.close()

    def _emitted(self, repo_id: str, inputs: SolveInputs, scope: SolveScope, sink: OpenSink) -> Pieces:
        outcomes: list[FileOutcome] = []
        counts: Counter[str] = Counter()
        imports = OwnImports()
        # A solved repository is millions of objects, which take seconds to free; ending a process takes none.
        prepare = partial(prepare_emission, inputs, scope, self.passed)
        for emitted in _in_order(map_after(prepare, self.processes)):
            for name, stream in emitted.written.items():
                for rows in unpack_rows(stream):
                    sink.add(name, rows)
            for name, data in emitted.passed.items():
                yield from cut(repo_id, emitted.chunk, name, data, name)
            outcomes += emitted.files if scope.wanted is not None else ()
            imports = emitted.imports
            counts.update(emitted.counts)
        gone = sorted(inputs.digests.keys() - inputs.files)
        outcome = RepositoryOutcome(outcomes, gone, len(inputs.files), imports)
        yield Piece(repo_id, "", "", OUTCOME, 0, 1, msgpack.encode(outcome))
        yield counts_piece({repo_id: dict(counts)})


class SolveInputs(NamedTuple):
    """The files of a repository, and their programs and the claims of tools, packed.

    They are unpacked chunk by chunk, for the solve and again when relations are emitted: unpacked, all of
    django's source distribution are 1.3 GB, of which the solve reads 0.4.
    """

    # By chunk: names and streams.
    streams: dict[str, list[tuple[str, bytes]]]
    files: set[str]
    # Of the rows that are stored, by file.
    digests: dict[str, str]
    # Files that are gone, or whose stored program is replaced.
    replaced: frozenset[str]

    @classmethod
    def of_pieces(cls, pieces: Iterable[Piece], scope: SolveScope) -> SolveInputs:
        """Collect the programs of new and of stored files, and the claims of the tools."""
        inputs = cls({}, set(), {}, scope.replaced)
        for chunk, members in groupby(pieces, key=lambda piece: piece.chunk):
            for name, data in joined(members):
                inputs.streams.setdefault(chunk, []).append((name, data))
                for rows in unpack_rows(data) if name in (PROGRAM, PROGRAMS) else ():
                    inputs.add(name, rows)
        return inputs

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """Note the files of programs, and the digests of stored ones."""
        ids = rows.column("file_id").to_pylist()
        if name == PROGRAMS:
            self.digests.update(zip(ids, rows.column("rows_digest").to_pylist(), strict=True))
            self.files.update(file_id for file_id in ids if file_id not in self.replaced)
        else:
            self.files.update(ids)

    def unpack(self, chunk: str, *names: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of a chunk by name."""
        for name, data in self.streams[chunk]:
            for rows in unpack_rows(data) if name in names else ():
                yield name, rows

    def programs(self, chunk: str, *tools: str) -> Iterator[tuple[Program, bytes]]:
        """Yield the programs of a chunk, with the claims of tools and as they came, without claims."""
        claims: dict[str, list[pa.RecordBatch]] = {}
        for name, rows in self.unpack(chunk, *tools):
            claims.setdefault(name, []).append(rows)
        views = load_views(claims, WITNESS_READS)
        for name, rows in self.unpack(chunk, PROGRAM, PROGRAMS):
            ids, programs = (rows.column(each).to_pylist() for each in ("file_id", "program"))
            for file_id, encoded in zip(ids, programs, strict=True):
                if name == PROGRAM or file_id not in self.replaced:
                    program = msgpack.decode(encoded, type=Program)
                    yield _with_claims(program, views.get(file_id)), encoded

    def solved_parts(self) -> Iterator[tuple[str, Program]]:
        """Yield what the solve reads of the programs, with their chunks."""
        for chunk in self.streams:
            for program, _ in self.programs(chunk, SCIP):
                yield chunk, solved_part(program)

    @property
    def has_claims(self) -> bool:
        """Whether there are claims of tools."""
        return any(name in (SCIP, TYPES) for streams in self.streams.values() for name, _ in streams)


def _with_claims(program: Program, view: FileView | None) -> Program:
    return with_witnesses(program, view.documents if view else (), view.row(TYPES) if view else None)


def prepare_emission(
    inputs: SolveInputs, scope: SolveScope, passed: Reads | None
) -> tuple[Callable[[int], tuple[int, EmittedChunk]], int]:
    """Solve a repository; return what emits the rows of a chunk by its number, and the number of chunks."""
    gc.disable()
    costs = Costs()
    with costs.timed(RELATE, DECODE):
        parts = list(inputs.solved_parts())
    with costs.timed(RELATE, SOLVE):
        solved = SolvedRepository([program for _, program in parts], scope.package)
        if inputs.has_claims:
            solved.index_definitions()
    imports = solved.own_imports()
    gc.freeze()
    numbers = {program.file_id: number for number, program in enumerate(solved.programs)}
    chunks = sorted({chunk for chunk, _ in parts})

    def emit(place: int) -> tuple[int, EmittedChunk]:
        chunk, own = chunks[place], Costs()
        with own.timed(RELATE, EMIT):
            emitted = _emitted_chunk(solved, imports, chunk, numbers, inputs, scope, passed)
        # Once: every process has the costs of the solve.
        shared = costs.counters() if place == 0 else {}
        return place, emitted._replace(counts={**emitted.counts, **shared, **own.counters()})

    return emit, len(chunks)


def _in_order(results: Iterable[tuple[int, EmittedChunk]]) -> Iterator[EmittedChunk]:
    """Yield results by their numbers; processes return them in any order."""
    waiting: dict[int, EmittedChunk] = {}
    due = 0
    for place, result in results:
        waiting[place] = result
        while due in waiting:
            yield waiting.pop(due)
            due += 1


def _emitted_chunk(
    solved: SolvedRepository,
    imports: OwnImports,
    chunk: str,
    numbers: Mapping[str, int],
    inputs: SolveInputs,
    scope: SolveScope,
    passed: Reads | None,
) -> EmittedChunk:
    changed: list[FileRelations] = []
    same: list[FileRelations] = []
    programs: list[tuple[Program, bytes, str]] = []
    files: list[FileOutcome] = []
    # In the order of their ids, which is the order of tables.
    for program, encoded in sorted(inputs.programs(chunk, SCIP, TYPES), key=lambda each: each[0].file_id):
        file_id = program.file_id
        made = solved.file(numbers[file_id], program)
        digest = made.digest()
        is_same = inputs.digests.get(file_id) == digest
        if is_same and scope.wanted is not None and file_id not in scope.wanted:
            continue
        (same if is_same else changed).append(made)
        # As it came, without the claims of tools: they are in tables of their own, and every solve adds them.
        programs.append((program, encoded, digest))
        files.append(FileOutcome(file_id, program.path, is_same))
    tables = tables_of(changed) if changed else {}
    written = {**tables, PROGRAMS: program_rows(programs)}
    counts = {name: rows.num_rows for name, rows in written.items() if rows.num_rows}
    for name, rows in tables_of(same).items() if same else ():
        tables[name] = pa.concat_batches([tables[name], rows]) if name in tables else rows
    read = {name: _read_later(name, rows, scope, passed) for name, rows in tables.items()}
    return EmittedChunk(chunk, _packed(written), _packed(read), counts, files, imports)


def _read_later(name: str, rows: pa.RecordBatch, scope: SolveScope, passed: Reads | None) -> pa.RecordBatch:
    """Return what later stages read of rows."""
    if passed is None:
        return rows
    if name not in passed:
        return rows.slice(0, 0)
    if name == RELATIONS and not scope.with_scopes:
        rows = rows.filter(pc.not_equal(rows.column("origin"), OF_SCOPES))
    return project(name, rows, passed[name])


def _packed(tables: Mapping[str, pa.RecordBatch]) -> dict[str, bytes]:
    return {name: pack_rows(rows) for name, rows in tables.items() if rows.num_rows}
