"""Solve repositories from the programs of their files, and emit the relations of each file.

    work = Solve({"requests": SolveScope()}, sink, processes=2)
    work(groups)       # pieces: relations for the graph, data files, counts, files with other relations

A repository is solved in one process, because what a name or a value means may depend on any of its files.
The relations are then emitted by several processes that are forked from the solved state, chunk by chunk. So
in a cluster a repository is solved where its programs are brought together, and repositories side by side,
the largest first.

After an edit the whole repository is solved again, over the stored programs of the files that stay. A digest
of each file's rows then shows which files have other relations than before: no rule decides beforehand what a
change can reach, so none can be wrong. Tests: `tests/unit/pipeline/test_solve_stage.py`.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, NamedTuple

import pyarrow as pa
from msgspec import Struct, msgpack

from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.costs import Costs
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.file_view import FileView, load_views
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.executors.processes import iterate_in_fork, map_in_forks
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
from codeanatomy.relate.program import Program
from codeanatomy.relate.repository import (
    PROGRAMS,
    TABLES,
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


class RepositoryOutcome(Struct, frozen=True):
    """The files of a solved repository that are emitted, and those that are gone."""

    files: list[FileOutcome]
    gone: list[str]
    total: int
    imports: OwnImports = OwnImports()


class EmittedChunk(NamedTuple):
    """Packed rows of the files of a chunk, by table."""

    chunk: str
    # Of files whose rows differ.
    changed: dict[str, bytes]
    # Of the other files that are wanted; their programs are with those that changed.
    same: dict[str, bytes]
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
        for emitted in iterate_in_fork(lambda: emit_chunks(inputs, scope, self.processes)):
            for name, stream in emitted.changed.items():
                for rows in unpack_rows(stream):
                    sink.add(name, rows)
            for key, tables in (("changed", emitted.changed), ("same", emitted.same)):
                for name in (each for each in TABLES if each in tables):
                    yield from cut(repo_id, emitted.chunk, name, tables[name], f"{key} {name}")
            outcomes += emitted.files if scope.wanted is not None else ()
            imports = emitted.imports
            counts.update(emitted.counts)
        gone = sorted(inputs.digests.keys() - inputs.programs.keys())
        outcome = RepositoryOutcome(outcomes, gone, len(inputs.programs), imports)
        yield Piece(repo_id, "", "", OUTCOME, 0, 1, msgpack.encode(outcome))
        yield counts_piece({repo_id: dict(counts)})


class SolveInputs(NamedTuple):
    """The programs of a repository, encoded, and the chunk of each file."""

    programs: dict[str, bytes]
    chunks: dict[str, str]
    # Of the rows that are stored.
    digests: dict[str, str]
    witnesses: dict[str, FileView]

    @classmethod
    def of_pieces(cls, pieces: Iterable[Piece], scope: SolveScope) -> SolveInputs:
        """Collect the programs of new and of stored files, and the claims of the tools."""
        inputs = cls({}, {}, {}, {})
        claims: dict[str, list[pa.RecordBatch]] = {}
        streams = (
            (chunk, *stream)
            for chunk, members in groupby(pieces, key=lambda piece: piece.chunk)
            for stream in joined(members)
        )
        for chunk, name, data in streams:
            for rows in unpack_rows(data):
                if name == PROGRAM:
                    inputs.add(rows, chunk)
                elif name == PROGRAMS:
                    ids, digests = rows.column("file_id").to_pylist(), rows.column("rows_digest").to_pylist()
                    inputs.digests.update(zip(ids, digests, strict=True))
                    kept = [number for number, file_id in enumerate(ids) if file_id not in scope.replaced]
                    inputs.add(rows.take(pa.array(kept, pa.int64())), chunk)
                elif name in (SCIP, TYPES):
                    claims.setdefault(name, []).append(rows)
        inputs.witnesses.update(load_views(claims, WITNESS_READS))
        return inputs

    def add(self, rows: pa.RecordBatch, chunk: str) -> None:
        """Add programs of a chunk."""
        ids = rows.column("file_id").to_pylist()
        self.programs.update(zip(ids, rows.column("program").to_pylist(), strict=True))
        self.chunks.update(dict.fromkeys(ids, chunk))

    def decoded(self) -> list[Program]:
        """Return the programs, with the claims of the tools about their files."""
        programs = (msgpack.decode(encoded, type=Program) for encoded in self.programs.values())
        return [self._with_witnesses(program) for program in programs]

    def _with_witnesses(self, program: Program) -> Program:
        view = self.witnesses.get(program.file_id)
        return with_witnesses(program, view.documents if view else (), view.row(TYPES) if view else None)


def emit_chunks(inputs: SolveInputs, scope: SolveScope, processes: int) -> Iterator[EmittedChunk]:
    """Solve a repository and yield the rows of its files, in the order of chunks."""
    gc.disable()
    costs = Costs()
    with costs.timed(RELATE, DECODE):
        programs = inputs.decoded()
    with costs.timed(RELATE, SOLVE):
        solved = SolvedRepository(programs, scope.package)
    imports = solved.own_imports()
    gc.freeze()
    members: dict[str, list[int]] = {}
    for number, program in enumerate(solved.programs):
        members.setdefault(inputs.chunks[program.file_id], []).append(number)
    for numbers in members.values():
        numbers.sort(key=lambda number: solved.programs[number].file_id)
    chunks = sorted(members)

    def emit(place: int) -> tuple[int, EmittedChunk]:
        chunk, own = chunks[place], Costs()
        with own.timed(RELATE, EMIT):
            emitted = _emitted_chunk(solved, imports, chunk, members[chunk], inputs, scope)
        # Once: every process has the costs of the solve.
        shared = costs.counters() if place == 0 else {}
        return place, emitted._replace(counts={**emitted.counts, **shared, **own.counters()})

    return _in_order(map_in_forks(emit, len(chunks), processes))


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
    numbers: Sequence[int],
    inputs: SolveInputs,
    scope: SolveScope,
) -> EmittedChunk:
    changed: list[FileRelations] = []
    same: list[FileRelations] = []
    programs: list[tuple[Program, bytes, str]] = []
    files: list[FileOutcome] = []
    for number in numbers:
        made = solved.file(number)
        program, digest = made.program, made.digest()
        file_id = program.file_id
        is_same = inputs.digests.get(file_id) == digest
        if is_same and scope.wanted is not None and file_id not in scope.wanted:
            continue
        (same if is_same else changed).append(made)
        # As it came, without the claims of tools: they are in tables of their own, and every solve adds them.
        programs.append((program, inputs.programs[file_id], digest))
        files.append(FileOutcome(file_id, program.path, is_same))
    tables = {**(tables_of(changed) if changed else {}), PROGRAMS: program_rows(programs)}
    counts = {name: rows.num_rows for name, rows in tables.items() if rows.num_rows}
    return EmittedChunk(
        chunk, _packed(tables), _packed(tables_of(same) if same else {}), counts, files, imports
    )


def _packed(tables: Mapping[str, pa.RecordBatch]) -> dict[str, bytes]:
    return {name: pack_rows(rows) for name, rows in tables.items() if rows.num_rows}
