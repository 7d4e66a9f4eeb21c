"""Compile the changed files, solve the whole repository again, and emit the relations that differ.

    result = compute_relations(run, refresh)
    result.impact               # files whose relations differ now, and why
    refresh_relate(run)         # the same, committed

What a name, a call or a value means may depend on any file of the repository: through imports and re-exports,
class hierarchies, what functions return and attributes hold. So the analysis is done again as a whole, over
the stored programs of all files, which is what a clean build does too; a digest of each file's rows
then shows which files differ. No rule decides beforehand what a change can reach, so none can be wrong.

Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from msgspec import msgpack

from codeanatomy.arrow import pack_rows
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.normalize.rules import DIAGNOSTICS
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.refresh.impact import COMPARED, impact_of
from codeanatomy.pipeline.refresh.normalize import normalize_files
from codeanatomy.pipeline.refresh.normalize import scope as normalized_files
from codeanatomy.pipeline.refresh.processes import map_in_forks, processes_of, run_in_fork
from codeanatomy.pipeline.refresh.refresh_state import Refresh, ids_of
from codeanatomy.pipeline.refresh.row_streams import Streams, joined, rows_in, streams_of
from codeanatomy.pipeline.refresh.write import Redone, read_change_feeds, replace_rows
from codeanatomy.pipeline.relate_step import INPUTS
from codeanatomy.plan.changes import FILES, Impact
from codeanatomy.plan.steps import NORMALIZE, RELATE
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.file_view import file_from_rows
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import PROGRAMS, SolvedRepository, program_row

CELLS = ("file_id", "program", "rows_digest")
# Kinds of diagnostics that relate writes; normalize writes disagreements, too.
RELATE_KINDS = frozenset({"relate", "disagreement"})


class RefreshedRelations(NamedTuple):
    """What the relate step of a refresh has redone."""

    redone: dict[str, Redone]
    # Its rows of `diagnostics_norm_v1`, for files that are new or have other relations.
    diagnostics: pa.Table
    impact: tuple[Impact, ...]


class Emitted(NamedTuple):
    """The packed rows of a file; None for a table in which they need not be written again."""

    file_id: str
    relations: bytes | None
    diagnostics: bytes | None
    # Its row in `relate_programs_v1`.
    program: bytes


def refresh_relate(run: Run) -> None:
    """Redo the relations of all files for which they differ."""
    # The diagnostics of both steps are committed together.
    run.wait_for(NORMALIZE)
    for refresh in run.refreshing(RELATE):
        with run.timed(RELATE):
            result = compute_relations(run, refresh)
        refresh.impact = result.impact
        with run.timed("relate_commit"):
            redone = {**result.redone, DIAGNOSTICS: _diagnostics(run, refresh, result)}
            replace_rows(run, refresh, RELATE, redone)
            read_change_feeds(run, refresh, RELATE, RELATIONS)


def compute_relations(run: Run, refresh: Refresh) -> RefreshedRelations:
    """Solve the repository again and return the rows of all files whose relations changed."""
    inputs = refresh.inputs
    scope = refresh.touched_in(FILES, SCIP, TYPES)
    evidence = {name: inputs.of_files(name, sorted(scope)) for name in INPUTS}
    new = [
        (
            *_place(rows),
            {
                name: streams_of(rows_by_file[file_id])
                for name, rows_by_file in evidence.items()
                if file_id in rows_by_file
            },
        )
        for file_id, rows in evidence["libcst_files_v1"].items()
    ]
    kept = inputs.all_files(PROGRAMS)
    again = normalized_files(refresh)
    # A solved repository is millions of objects, which take seconds to free; ending a process takes none.
    there, emitted_files = run.worker.call(
        run_in_fork, emit_changed_files, new, kept, scope, again, processes_of(run.settings)
    )
    gone = frozenset(kept.column("file_id").to_pylist()) - there
    other = {each.file_id: each.relations for each in emitted_files if each.relations is not None}
    owners = gone | other.keys()
    total = len(there)
    run.progress.update(RELATE, f"{total:,}/{total:,} files, {len(other):,} with other relations", last=True)
    relations = joined(RELATIONS, list(other.values()))
    programs = joined(PROGRAMS, [each.program for each in emitted_files])
    others = sorted(owners - gone - ids_of(refresh.changes))
    before = inputs.of_files(RELATIONS, others, COMPARED)
    inputs.put(RELATIONS, owners, relations)
    impact = impact_of(refresh, before, inputs.of_files(RELATIONS, others))
    refresh.touched[RELATIONS] = owners
    redone = {
        RELATIONS: Redone(relations, owners),
        PROGRAMS: Redone(programs, gone | {each.file_id for each in emitted_files}),
    }
    diagnostics = [each.diagnostics for each in emitted_files if each.diagnostics is not None]
    return RefreshedRelations(redone, joined(DIAGNOSTICS, diagnostics), impact)


def emit_changed_files(
    new: Sequence[tuple[str, str, str, Streams]],
    kept: pa.Table,
    scope: frozenset[str],
    again: frozenset[str],
    processes: int,
) -> tuple[frozenset[str], list[Emitted]]:
    """Return the ids of all files, and the rows of files whose relations changed or are written again."""
    programs = [
        compile_file(file_from_rows(repo_id, file_id, path, rows_in(streams)))
        for repo_id, file_id, path, streams in new
    ]
    digests: dict[str, str] = {}
    for file_id, program, digest in zip(*(kept.column(name) for name in CELLS), strict=True):
        digests[file_id.as_py()] = digest.as_py()
        if file_id.as_py() not in scope:
            programs.append(msgpack.decode(program.as_buffer(), type=Program))
    solved = SolvedRepository(programs)

    def emit(number: int) -> Emitted | None:
        made, file_id = solved.file(number), solved.programs[number].file_id
        digest = made.digest()
        is_same = digests.get(file_id) == digest
        if is_same and file_id not in again and file_id not in scope:
            return None
        tables = made.tables()
        return Emitted(
            file_id,
            None if is_same else pack_rows(tables[RELATIONS]),
            # Committed together with the diagnostics of normalize, or because they may have changed.
            None if is_same and file_id not in again else pack_rows(tables[DIAGNOSTICS]),
            pack_rows(program_row(made.program, digest)),
        )

    result = [each for each in map_in_forks(emit, len(solved.programs), processes) if each is not None]
    there = frozenset(program.file_id for program in solved.programs)
    return there, result


def _diagnostics(run: Run, refresh: Refresh, result: RefreshedRelations) -> Redone:
    """Return all diagnostics of the files for which normalize or relate may have other ones now."""
    files = normalized_files(refresh)
    own = refresh.diagnostics
    reported = set(result.diagnostics.column("file_id").to_pylist())
    others = sorted(refresh.touched_in(RELATIONS) - files)
    before = refresh.inputs.of_files(DIAGNOSTICS, others)
    # Of the files that normalize has not redone, only those with diagnostics of relate, now or before.
    again = [
        each
        for each in others
        if each in reported
        or (each in before and not RELATE_KINDS.isdisjoint(before[each].column("diag_kind").to_pylist()))
    ]
    parts = [result.diagnostics] + ([] if own is None else [own])
    if again:
        parts.append(normalize_files(run, refresh, again)[DIAGNOSTICS])
    rows = pa.concat_tables(parts)
    owners = files | set(again)
    refresh.inputs.put(DIAGNOSTICS, owners, rows)
    refresh.touched[DIAGNOSTICS] = owners
    return Redone(rows, owners)


def _place(rows: pa.Table) -> tuple[str, str, str]:
    repo_id, file_id, path = (rows.column(name)[0].as_py() for name in FILE_COLUMN_NAMES)
    return repo_id, file_id, path
