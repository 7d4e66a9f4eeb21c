"""Drive a build: pass one over files, the solve of repositories, pass two over files, and their commits.

    for group in work_groups(run): Passes(run, executor, group, step).execute()

    files --> FIRST PASS: extract, normalize, compile --> SOLVE: repositories --> SECOND PASS: graph rows
                  | views, programs                         | relations               |
                  v                                         v                         v
              tables of extract and normalize           tables of relate          tables of graph

Rows go from one pass to the next in pieces that the executor holds; a pass reads tables only for files that
the pass before has not worked on: because its step was skipped, or because they did not change. A build of a
whole repository is a refresh in which every file is new: what differs is which files are worked on, and what
the commits replace. Tables of pass one are committed while repositories are solved.

Repositories that are built as a whole are worked on together, a repository that is refreshed by itself.
Tests: `tests/unit/pipeline/test_passes.py`, `tests/unit/pipeline/test_refresh.py`,
`tests/spark/test_build.py`, `tests/spark/test_incremental.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json, msgpack, structs

from codeanatomy import catalog
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.adopt import local_folder
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.extract.worker import Task, extract_tables
from codeanatomy.file_view import Reads, TableReads, union_reads
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP, TABLES
from codeanatomy.logs import Log
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import DIAGNOSTICS, FILE_TABLES
from codeanatomy.normalize.rules import READS as NORMALIZE_READS
from codeanatomy.pipeline.commits import Redone, TableCommits, read_change_feeds
from codeanatomy.pipeline.context import Run, counts_of
from codeanatomy.pipeline.executors.executor import Executor, Held, StoredRows, TableWrite
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.first_pass import FirstPass, StoredFirstPass
from codeanatomy.pipeline.impact import BEFORE, COMPARED, IMPACT, ExplainImpact, edited_first
from codeanatomy.pipeline.key_collisions import refuse_equal_keys, refuse_refreshed_keys, unpack_keys
from codeanatomy.pipeline.pieces import (
    COUNTS,
    DATA_FILE,
    KEY_NUMBERS,
    KEYS,
    PROGRAM,
    REDONE,
    ROWS,
    batches_of,
    data_files,
    sum_counts,
)
from codeanatomy.pipeline.refreshes import Refresh, ids_of
from codeanatomy.pipeline.second_pass import COPIES, STORED, MergeShared, SecondPass, are_same
from codeanatomy.pipeline.sinks import Sink, TableFolder
from codeanatomy.pipeline.solve import RepositoryOutcome, Solve, SolveScope
from codeanatomy.pipeline.stored_rows import read_stored
from codeanatomy.pipeline.tool_rows import DifferingRows, ToolOutcome
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.changes import FILES, PROGRAM_TABLES, Impact, read_file_states
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.relate.compile.file_program import READS as COMPILE_READS
from codeanatomy.relate.compile.file_program import WITNESS_READS
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import PROGRAMS
from codeanatomy.sources.digest import states_digest

EXTRACTED = tuple(name for name in extract_tables(EXTRACTORS) if name not in (*PROGRAM_TABLES, FAILURES))
# Second commit of the diagnostics in a run; the first is that of normalize.
ADDED_SEQUENCE = 2
# Kinds of diagnostics that relate writes; normalize writes disagreements, too.
RELATE_KINDS = frozenset({"relate", "disagreement"})
STORED_PROGRAMS: TableReads = dict.fromkeys(("program", "rows_digest"), ())
ALL_FILES = None
# Tables whose rows are counted where they are made, if the step works on whole repositories.
COUNTED = {NORMALIZE: FILE_TABLES, GRAPH: (*TABLES, SHARED, *COPIES, "graph_files")}


class StepContext(Protocol):
    """Runs a step or a part of it: its span, its time, its name in errors; the last part ends the step."""

    def __call__(self, step: str, *, is_last: bool = True) -> AbstractContextManager[None]: ...


class WorkGroup(NamedTuple):
    """Repositories that are worked on together: several as a whole, or one by a refresh."""

    repositories: tuple[str, ...]
    refresh: Refresh | None


def work_groups(run: Run) -> list[WorkGroup]:
    """Return the groups of repositories that have work."""
    busy = [
        repo_id for repo_id in run.listed.listings if any(repo_id in step.busy for step in run.plan.steps)
    ]
    whole = tuple(repo_id for repo_id in busy if repo_id not in run.refreshes)
    refreshes = sorted(run.refreshes.values(), key=lambda refresh: refresh.number)
    return [
        *([WorkGroup(whole, None)] if whole else []),
        *(WorkGroup((refresh.repo_id,), refresh) for refresh in refreshes if refresh.repo_id in busy),
    ]


class Passes:
    """The passes of a build over a group of repositories."""

    def __init__(self, run: Run, executor: Executor, group: WorkGroup, step: StepContext) -> None:
        self.run = run
        self.executor = executor
        self.repositories, self.refresh = group
        self._step = step
        # Pieces of pass one, of fresh files and of stored ones.
        self._views: list[Held] = []
        self._background = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        # Documents of an index are evidence for normalize, and there or not only after pass one.
        self._is_late = any(self._has_scip(repo_id) for repo_id in self.repositories)
        # Files that pass one has worked on; of other repositories of the group all or none.
        self._seen: dict[str, frozenset[str]] = {}
        self._chunks = {repo_id: run.chunk_count(repo_id) for repo_id in self.repositories}

    def execute(self) -> None:
        """Run the steps that have work."""
        try:
            self._first_pass()
            solved = self._solve() if self._busy(RELATE) else None
            self._join()
            self._second_pass(solved)
            self._join()
        finally:
            self._background.shutdown(cancel_futures=True)
            self.executor.release()

    def forecast(self) -> tuple[Impact, ...]:
        """Return what the refresh would redo, and why; nothing is committed."""
        refresh = self._refresh_state
        if not self._busy(RELATE) or self._is_whole(RELATE):
            return refresh.impact
        try:
            self._extract(Sink())
            self._compare_tools()
            self._solved(Sink())
            return refresh.impact
        finally:
            self._background.shutdown(cancel_futures=True)
            self.executor.release()

    # What is to be done.

    def _busy(self, step: str) -> tuple[str, ...]:
        """Return the repositories of the group that a step has work for."""
        busy = {each for planned in self.run.plan.steps if planned.name == step for each in planned.busy}
        return tuple(each for each in self.repositories if each in busy)

    def _is_whole(self, step: str) -> bool:
        """Return whether a step works on whole repositories."""
        return self.refresh is None or self.refresh.repo_id in self.run.plan.step(step).runs_for

    @property
    def _refresh_state(self) -> Refresh:
        if self.refresh is None:
            raise ValueError("the repositories are built as a whole")
        return self.refresh

    def _has_scip(self, repo_id: str) -> bool:
        scip = self.run.request.scip
        return scip.auto or repo_id in scip.given or self.run.counts.get(repo_id, Counter())[SCIP] > 0

    def _files(self, repo_id: str) -> frozenset[str]:
        """Return the ids of the files of a repository."""
        return frozenset(file_id(repo_id, entry.path) for entry in self.run.listed.listings[repo_id].entries)

    def _sink(self, names: Iterable[str]) -> Sink:
        """Return the sink for tables that are written where their rows are made."""
        store = self.run.store
        folders = {name: local_folder(store, name) for name in names}
        return Sink(
            {
                name: TableFolder(folder, store.table(name))
                for name, folder in folders.items()
                if folder is not None
            }
        )

    def _second_reads(self) -> Reads:
        """Return what pass two reads of the files."""
        work = self._second_work(Sink())
        return work.reads if work.graphed or work.normalized else {}

    def _second_work(self, sink: Sink) -> SecondPass:
        normalized = self._busy(NORMALIZE) if self._is_late else ()
        graphed, profile = self._busy(GRAPH), self.run.request.profile
        return SecondPass(frozenset(normalized), frozenset(graphed), profile, sink)

    # Pass one.

    def _first_pass(self) -> None:
        if self._busy(EXTRACT):
            with self._step(EXTRACT, is_last=self.refresh is not None):
                names = (*EXTRACTED, *(() if self._is_late else FILE_TABLES))
                fresh = self._extract(self._sink(names))
                if self.refresh is not None:
                    self._commit_extracted(fresh)
            if self.refresh is None:
                self._in_background(EXTRACT, lambda: self._commit_extracted(fresh))
        self._stored_first_pass()
        if self._busy(NORMALIZE) and not self._is_late:
            self._in_background(NORMALIZE, self._commit_normalized)
            if self.refresh is not None:
                self._join()

    def _first_work(self, sink: Sink, steps: Mapping[str, Collection[str]]) -> FirstPass:
        passed = {name: each for name, each in self._second_reads().items() if name != RELATIONS}
        normalized = frozenset[str]() if self._is_late else frozenset(steps[NORMALIZE])
        compiled = frozenset(steps[RELATE])
        return FirstPass(self.run.settings.extract, normalized, compiled, passed, self._chunks, sink)

    def _extract(self, sink: Sink) -> Held:
        """Read, extract, normalize and compile the files that are new or have changed."""
        run, repositories = self.run, self._busy(EXTRACT)
        listings = {repo_id: run.listed.listings[repo_id] for repo_id in repositories}
        read = dict(listings)
        if self.refresh is not None:
            paths = {change.path for change in self.refresh.read}
            for repo_id, listing in listings.items():
                entries = tuple(entry for entry in listing.entries if entry.path in paths)
                read[repo_id] = structs.replace(listing, entries=entries)
        sources = [RepositoryListing(repo_id, listing) for repo_id, listing in read.items()]
        total = sum(len(listing.entries) for listing in read.values())
        tasks: list[Task] = list(tool_tasks(listings, run.request.types, run.request.scip))
        if total:
            tasks += partition_files(sources, run.settings.extract.partitions, run.cores)
        work = self._first_work(sink, {step: self._busy(step) for step in (NORMALIZE, RELATE)})
        with run.timed(EXTRACT):
            held = self.executor.map_tasks(EXTRACT, [msgpack.encode(task) for task in tasks], work, total)
        self._views.append(held)
        for repo_id in repositories:
            changed = None if self.refresh is None else ids_of(self.refresh.changes)
            self._seen[repo_id] = self._files(repo_id) if changed is None else changed
        self._count(held)
        return held

    def _stored_first_pass(self) -> None:
        """Normalize and compile files whose evidence is stored: their steps run, and extract does not."""
        steps = {
            step: [each for each in self._busy(step) if self._is_whole(step)] for step in (NORMALIZE, RELATE)
        }
        if self._is_late:
            steps[NORMALIZE] = []
        repositories = sorted({*steps[NORMALIZE], *steps[RELATE]})
        wanted: list[StoredRows] = []
        reads = union_reads(NORMALIZE_READS, COMPILE_READS, self._second_reads())
        for repo_id in repositories:
            owners = tuple(sorted(self._files(repo_id) - self._seen.get(repo_id, frozenset())))
            if not owners or (self.refresh is None and repo_id in self._seen):
                continue
            names = [name for name in reads if name in EXTRACTED]
            if repo_id not in self._busy(NORMALIZE):
                names += [name for name in reads if name in FILE_TABLES]
            whole = ALL_FILES if self.refresh is None else owners
            wanted += [StoredRows(name, repo_id, whole, reads[name], name) for name in names]
            self._seen[repo_id] = self._files(repo_id)
        if not wanted:
            return
        step = NORMALIZE if steps[NORMALIZE] else RELATE
        named = {each.name for each in wanted}
        work = StoredFirstPass(self._first_work(self._sink(FILE_TABLES), steps))
        with self._step(step, is_last=False), self.run.timed(step):
            stored = self.executor.stored(wanted)
            held = self.executor.map_groups(step, [stored], named, "chunk", work)
        self._views.append(held)
        self._count(held)

    def _count(self, held: Held) -> None:
        """Count the rows of steps that work on whole repositories; a refresh counts what it commits."""
        counts = sum_counts(self.executor.collect(held, COUNTS))
        if self.refresh is not None:
            whole = [step for step in COUNTED if self._busy(step) and self._is_whole(step)]
            names = {name for step in whole for name in COUNTED[step]}
            counts = {
                repo_id: Counter({name: counted[name] for name in counted.keys() & names})
                for repo_id, counted in counts.items()
            }
        self.run.count(counts)

    def _written(
        self, held: Sequence[Held], names: Mapping[str, str], constants: Mapping[str, str] = {}
    ) -> dict[str, Redone]:
        """Write tables from pieces, by table and name of the pieces; those of Spark on their commit."""
        run = self.run
        writes = [
            TableWrite(
                run.store.table(name), local_folder(run.store, name) or "", of, constants, name in COPIES
            )
            for name, of in names.items()
        ]
        local = [write for write in writes if write.folder]
        files = self.executor.write_files(held, local) if local else {}
        return {
            write.table.name: Redone(files.get(write.table.name, ()), held=held, write=write)
            for write in writes
        }

    def _from_tasks(self, names: Iterable[str], held: Sequence[Held]) -> dict[str, Redone]:
        """Return tables that tasks have written; where only Spark can write, they are in pieces."""
        files = data_files(piece for each in held for piece in self.executor.collect(each, DATA_FILE))
        return {
            name: Redone(
                files.get(name, ()), held=held, write=TableWrite(self.run.store.table(name), "", ROWS + name)
            )
            for name in names
        }

    def _commit_extracted(self, fresh: Held) -> None:
        run, refresh = self.run, self.refresh
        redone = self._from_tasks(EXTRACTED, [fresh])
        if refresh is None:
            redone |= self._written([fresh], {name: name for name in PROGRAM_TABLES})
        else:
            owners = ids_of(refresh.changes)
            redone = {name: structs.replace(each, owners=owners) for name, each in redone.items()}
            redone |= self._commit_tools()
        failures = self._written([fresh], {FAILURES: ROWS + FAILURES}, {"run_id": run.run_id})[FAILURES]
        redone[FAILURES] = structs.replace(failures, is_added=True)
        if refresh is not None:
            kept = self._kept_failures(fresh)
            redone[FAILURES] = structs.replace(redone[FAILURES], files=[*failures.files, *kept])
        with run.timed("extract_commit"):
            self._commits(EXTRACT).all(redone)
            if refresh is not None:
                read_change_feeds(run, refresh, EXTRACT, FILES, *PROGRAM_TABLES)
        for repo_id in self._busy(EXTRACT):
            warn_if_source_changed(run, repo_id)

    def _commit_tools(self) -> dict[str, Redone]:
        """Return the rows of tools for files about which they reported other rows before."""
        held, outcome = self._compare_tools()
        if held is None:
            return {name: Redone(owners=()) for name in PROGRAM_TABLES}
        touched = self._refresh_state.touched
        return {
            name: structs.replace(each, owners=touched[name], is_shared=name in outcome.shared)
            for name, each in self._written([held], {name: name for name in PROGRAM_TABLES}).items()
        }

    def _compare_tools(self) -> tuple[Held | None, ToolOutcome]:
        """Find the files about which tools reported other rows before."""
        refresh, repo_id = self._refresh_state, self._refresh_state.repo_id
        refresh.touched[FILES] = ids_of(refresh.changes)
        counts = self.run.counts.get(repo_id, Counter())
        has_rows = any(counts[name] for name in PROGRAM_TABLES)
        if not has_rows and not tool_tasks(
            {repo_id: self.run.listed.listings[repo_id]}, self.run.request.types, self.run.request.scip
        ):
            return None, ToolOutcome()
        every = {name: catalog.table(name).column_names for name in PROGRAM_TABLES}
        stored = self.executor.stored(
            [
                StoredRows(name, repo_id, ALL_FILES, dict.fromkeys(columns, ()), STORED + name)
                for name, columns in every.items()
            ]
        )
        names = (*PROGRAM_TABLES, *(STORED + name for name in PROGRAM_TABLES))
        held = self.executor.map_groups(EXTRACT, [*self._views, stored], names, "repo_id", DifferingRows())
        outcomes = [
            msgpack.decode(piece.data, type=ToolOutcome) for piece in self.executor.collect(held, REDONE)
        ]
        outcome = outcomes[0] if outcomes else ToolOutcome()
        refresh.touched |= {name: frozenset(outcome.owners.get(name, ())) for name in PROGRAM_TABLES}
        self._missing = frozenset(outcome.missing)
        return held, outcome

    _missing: frozenset[str] = frozenset()

    def _kept_failures(self, fresh: Held) -> list[DataFile]:
        """Write the failures of files that were not read again: readers look them up by the newest run."""
        run, refresh = self.run, self._refresh_state
        before = run.base.repositories[refresh.repo_id].extract_run_id
        every = dict.fromkeys(catalog.table(FAILURES).column_names, ())
        old = read_stored(run, StoredRows(FAILURES, refresh.repo_id, ALL_FILES, every, FAILURES))
        again = pa.array(sorted(change.path for change in refresh.changes), pa.string())
        is_again = pc.or_(
            pc.is_in(old.column("path"), value_set=again),
            pc.is_in(old.column("extractor_name"), value_set=pa.array(PROGRAM_TABLES)),
        )
        of_run = pc.equal(old.column("run_id"), before or "")
        kept = old.filter(pc.and_(of_run, pc.invert(is_again)))
        made = batches_of(self.executor.collect(fresh, ROWS + FAILURES)).get(ROWS + FAILURES, [])
        names = [
            name for rows in (*made, *kept.to_batches()) for name in rows.column("extractor_name").to_pylist()
        ]
        _count_failures(run, refresh.repo_id, names)
        arrays = [
            pa.repeat(run.run_id, kept.num_rows) if name == "run_id" else kept.column(name)
            for name in kept.schema.names
        ]
        return write_rows(run, FAILURES, pa.Table.from_arrays(arrays, schema=kept.schema))

    def _commit_normalized(self) -> None:
        refresh = self.refresh
        redone = self._from_tasks(FILE_TABLES, self._views)
        if refresh is not None and not self._is_whole(NORMALIZE):
            owners = ids_of(refresh.changes)
            redone = {name: structs.replace(each, owners=owners) for name, each in redone.items()}
            if self._busy(RELATE):
                # What relate adds to them is committed together with them.
                del redone[DIAGNOSTICS]
        with self.run.timed("normalize_commit"):
            self._commits(NORMALIZE).all(redone)

    # The solve.

    def _solve(self) -> Held:
        run = self.run
        with self._step(RELATE, is_last=not self._is_late):
            solved = self._solved(self._sink((RELATIONS, PROGRAMS)))
            self._join()
            with run.timed("relate_commit"):
                self._commit_solved(solved)
        return solved

    def _solved(self, sink: Sink) -> Held:
        """Solve the repositories; of a refresh, find the files whose relations differ."""
        run, refresh, repositories = self.run, self.refresh, self._busy(RELATE)
        inputs, stored = list(self._views), []
        for repo_id in repositories:
            if repo_id not in self._busy(EXTRACT):
                stored += [
                    StoredRows(name, repo_id, ALL_FILES, WITNESS_READS[name], name) for name in PROGRAM_TABLES
                ]
        scopes = {repo_id: SolveScope() for repo_id in repositories}
        if refresh is not None and not self._is_whole(RELATE):
            repo_id = refresh.repo_id
            stored.append(StoredRows(PROGRAMS, repo_id, ALL_FILES, STORED_PROGRAMS, PROGRAMS))
            normalized = self._normalized_files()
            if self._is_late and self._graphed_files() is None:
                # All files are normalized in pass two, which needs the diagnostics of relate of all.
                normalized |= self._files(repo_id)
            wanted = refresh.touched_in(FILES, SCIP, TYPES) | normalized
            scopes[repo_id] = SolveScope(ids_of(refresh.changes), wanted, normalized)
        if stored:
            inputs.append(self.executor.stored(stored))
        names = (PROGRAM, PROGRAMS, *PROGRAM_TABLES)
        with run.timed(RELATE):
            work = Solve(scopes, sink, max(1, run.cores_of_task // len(scopes)))
            solved = self.executor.map_groups(RELATE, inputs, names, "repo_id", work)
        if self._is_whole(RELATE):
            run.count(sum_counts(self.executor.collect(solved, COUNTS)))
        else:
            self._outcome = self._solve_outcome(solved)
            self._explain(solved)
        return solved

    _outcome: RepositoryOutcome = RepositoryOutcome([], [], 0)

    def _normalized_files(self) -> frozenset[str]:
        """Return the files of a refresh that normalize redoes, with those that only a SCIP index has."""
        refresh = self._refresh_state
        if not self._busy(NORMALIZE):
            return frozenset()
        return refresh.touched_in(FILES, SCIP) | self._missing

    def _solve_outcome(self, solved: Held) -> RepositoryOutcome:
        pieces = self.executor.collect(solved, REDONE)
        outcome = msgpack.decode(pieces[0].data, type=RepositoryOutcome) if pieces else self._outcome
        refresh = self._refresh_state
        differing = frozenset(each.file_id for each in outcome.files if not each.is_same)
        refresh.touched[RELATIONS] = differing | frozenset(outcome.gone)
        status = f"{outcome.total:,}/{outcome.total:,} files, {len(differing):,} with other relations"
        self.run.progress.update(RELATE, status, last=True)
        return outcome

    def _explain(self, solved: Held) -> None:
        """Find out why files that were not edited are redone: where their relations lead to now."""
        refresh = self._refresh_state
        changed = ids_of(refresh.changes)
        others = refresh.touched[RELATIONS] - frozenset(self._outcome.gone) - changed
        impact = list(refresh.impact)
        if others:
            before = StoredRows(RELATIONS, refresh.repo_id, tuple(sorted(others)), COMPARED, BEFORE)
            stored = self.executor.stored([before])
            work = ExplainImpact(others)
            held = self.executor.map_groups(RELATE, [solved, stored], (RELATIONS, BEFORE), "chunk", work)
            for piece in self.executor.collect(held, IMPACT):
                impact += json.decode(piece.data, type=list[Impact])
        witnessed = refresh.touched_in(*PROGRAM_TABLES) - changed - others
        if witnessed:
            entries = self.run.listed.listings[refresh.repo_id].entries
            paths = {file_id(refresh.repo_id, entry.path): entry.path for entry in entries}
            impact += [Impact(paths[each], "witness") for each in sorted(witnessed) if each in paths]
        refresh.impact = edited_first(impact)

    def _commit_solved(self, solved: Held) -> None:
        run, refresh = self.run, self.refresh
        redone = self._from_tasks((RELATIONS, PROGRAMS), [solved])
        if refresh is not None and not self._is_whole(RELATE):
            emitted = frozenset(each.file_id for each in self._outcome.files)
            gone = frozenset(self._outcome.gone)
            owners = {RELATIONS: refresh.touched[RELATIONS], PROGRAMS: gone | emitted}
            redone = {name: structs.replace(each, owners=owners[name]) for name, each in redone.items()}
            if not self._is_late:
                redone[DIAGNOSTICS] = self._refreshed_diagnostics(solved)
            self._commits(RELATE).all(redone)
            read_change_feeds(run, refresh, RELATE, RELATIONS)
            return
        self._commits(RELATE).all(redone)
        if not self._is_late:
            self._add_diagnostics(solved)

    def _add_diagnostics(self, solved: Held) -> None:
        """Add the diagnostics of relate to those of normalize, which are committed."""
        counts = sum_counts(self.executor.collect(solved, COUNTS))
        if any(counted[DIAGNOSTICS] for counted in counts.values()):
            added = self._written([solved], {DIAGNOSTICS: DIAGNOSTICS})[DIAGNOSTICS]
            commits = self._commits(RELATE)
            commits.all({DIAGNOSTICS: structs.replace(added, is_added=True)}, ADDED_SEQUENCE)

    def _refreshed_diagnostics(self, solved: Held) -> Redone:
        """Return all diagnostics of files for which normalize or relate may have other ones now."""
        run, refresh = self.run, self._refresh_state
        files = self._normalized_files()
        reported = {each.file_id for each in self._outcome.files if each.has_diagnostics}
        others = sorted(refresh.touched[RELATIONS] - files)
        kinds: TableReads = {"diag_kind": ()}
        before = read_stored(run, StoredRows(DIAGNOSTICS, refresh.repo_id, tuple(others), kinds, DIAGNOSTICS))
        of_relate = pc.is_in(before.column("diag_kind"), value_set=pa.array(sorted(RELATE_KINDS)))
        had = set(before.filter(of_relate).column("file_id").to_pylist())
        gone = frozenset(self._outcome.gone)
        # Of the files that normalize has not redone, only those with diagnostics of relate, now or before.
        again = tuple(each for each in others if (each in reported or each in had) and each not in gone)
        written = self._written([solved], {DIAGNOSTICS: DIAGNOSTICS})[DIAGNOSTICS]
        made = [*self._from_tasks((DIAGNOSTICS,), self._views)[DIAGNOSTICS].files, *written.files]
        if again:
            reads = union_reads(NORMALIZE_READS, self._second_reads())
            wanted = [
                StoredRows(name, refresh.repo_id, again, reads[name], name)
                for name in reads
                if name in EXTRACTED
            ]
            stored = self.executor.stored(wanted)
            steps = {NORMALIZE: self._busy(NORMALIZE), RELATE: ()}
            work = StoredFirstPass(self._first_work(Sink(), steps))
            names = {each.name for each in wanted}
            normalized = self.executor.map_groups(RELATE, [stored], names, "chunk", work)
            made += self._written([normalized], {DIAGNOSTICS: ROWS + DIAGNOSTICS})[DIAGNOSTICS].files
            self._again = normalized
            # Pass two has all rows of them from here.
            self._seen[refresh.repo_id] = self._seen.get(refresh.repo_id, frozenset()) | frozenset(again)
        owners = files | set(again) | (refresh.touched[RELATIONS] & gone)
        refresh.touched[DIAGNOSTICS] = frozenset(owners)
        return structs.replace(written, files=made, owners=owners)

    # Files that normalize has redone only for their diagnostics.
    _again: Held = None

    # Pass two.

    def _second_pass(self, solved: Held | None) -> None:
        """Make the graph of the files, and normalize them where a SCIP index is evidence."""
        if not self._busy(GRAPH) and not (self._is_late and self._busy(NORMALIZE)):
            return
        step = GRAPH if self._busy(GRAPH) else NORMALIZE
        with self._step(step):
            redone = self._graphed_files()
            names = {*self._second_reads()}
            inputs = [*self._views, *([] if solved is None else [solved])]
            if self._again is not None:
                inputs.append(self._again)
            stored = self._stored_inputs(redone)
            if stored:
                inputs.append(self.executor.stored(stored))
            with self.run.timed(step):
                work = self._second_work(self._sink(FILE_TABLES))
                made = self.executor.map_groups(step, inputs, names, "chunk", work)
            self._count(made)
            if self._is_late and self._busy(NORMALIZE):
                self._commit_late(made, solved, redone)
            if self._busy(GRAPH):
                self._commit_graph(made, redone)
        for late in (NORMALIZE, RELATE) if self._is_late else ():
            if self._busy(late) and late != step:
                with self._step(late):
                    pass

    def _graphed_files(self) -> frozenset[str] | None:
        """Return the files that pass two works on; None: all files of the repositories."""
        step = GRAPH if self._busy(GRAPH) else NORMALIZE
        if self.refresh is None or self._is_whole(step):
            return None
        touched = self.refresh.touched_in(FILES, SCIP, DIAGNOSTICS, RELATIONS)
        return touched | self._normalized_files()

    def _stored_inputs(self, redone: frozenset[str] | None) -> list[StoredRows]:
        """Return the stored rows of files that pass two works on and the passes before have not seen."""
        reads, wanted = self._second_reads(), []
        late = self._busy(NORMALIZE) if self._is_late else ()
        for repo_id in dict.fromkeys((*self._busy(GRAPH), *late)):
            seen = self._seen.get(repo_id, frozenset())
            if redone is None:
                others = self._files(repo_id) - seen
                owners = ALL_FILES if not seen else tuple(sorted(others))
            else:
                others = redone - seen
                owners = tuple(sorted(others))
            if repo_id not in self._busy(EXTRACT):
                # The claims of tools are not among what pass one has passed on.
                whole = ALL_FILES if redone is None else tuple(sorted(redone))
                wanted += [
                    StoredRows(name, repo_id, whole, reads[name], name)
                    for name in PROGRAM_TABLES
                    if name in reads
                ]
            if not others:
                continue
            emitted = frozenset(each.file_id for each in self._outcome.files)
            reported = frozenset[str]() if self.refresh is None else self.refresh.touched_in(DIAGNOSTICS)
            for name in reads:
                is_made = name in FILE_TABLES and repo_id in late
                if name == RELATIONS and repo_id in self._busy(RELATE):
                    if self._is_whole(RELATE):
                        continue
                    rest = tuple(sorted(others - emitted))
                    wanted.append(StoredRows(name, repo_id, rest, reads[name], name))
                elif name == DIAGNOSTICS and not is_made and self.refresh is not None:
                    rest = tuple(sorted(others - reported))
                    wanted.append(StoredRows(name, repo_id, rest, reads[name], name))
                elif name not in PROGRAM_TABLES and not is_made:
                    wanted.append(StoredRows(name, repo_id, owners, reads[name], name))
        return wanted

    def _commit_late(self, made: Held, solved: Held | None, redone: frozenset[str] | None) -> None:
        """Commit what normalize has made in pass two, and the diagnostics of relate after it."""
        tables = self._from_tasks(FILE_TABLES, [made])
        with self.run.timed("normalize_commit"):
            if self._is_whole(NORMALIZE):
                self._commits(NORMALIZE).all(tables)
                if solved is not None:
                    self._add_diagnostics(solved)
                return
            owners = {name: structs.replace(each, owners=redone) for name, each in tables.items()}
            if solved is not None:
                # In one commit: a refresh commits once to a table.
                added = self._written([solved], {DIAGNOSTICS: DIAGNOSTICS})[DIAGNOSTICS]
                both = [*owners[DIAGNOSTICS].files, *added.files]
                owners[DIAGNOSTICS] = structs.replace(owners[DIAGNOSTICS], files=both)
            self._commits(NORMALIZE).all(owners)

    def _commit_graph(self, made: Held, redone: frozenset[str] | None) -> None:
        run, refresh = self.run, self.refresh
        if refresh is None or redone is None:
            numbers = (piece.data for piece in self.executor.collect(made, KEY_NUMBERS))
            repositories = self._busy(GRAPH)
            refuse_equal_keys(
                run,
                repositories,
                numbers,
                lambda: (piece.data for piece in self.executor.collect(made, KEYS)),
            )
        else:
            keys = (owner for piece in self.executor.collect(made, KEYS) for owner in unpack_keys(piece.data))
            refuse_refreshed_keys(run, refresh, keys)
        shared, changed = self._merged(made, redone)
        with run.timed("graph_commit"):
            names = {**{name: name for name in (*TABLES, SHARED)}, **COPIES}
            tables = self._written([made, *shared], names)
            if redone is not None:
                tables = {
                    name: structs.replace(each, owners=redone, is_shared=names[name] in changed)
                    for name, each in tables.items()
                }
            self._commits(GRAPH).all(tables)

    def _merged(self, made: Held, redone: frozenset[str] | None) -> tuple[list[Held], frozenset[str]]:
        """Merge the rows of whole repositories; of a refresh, return the tables in which they changed."""
        run = self.run
        if redone is None:
            merged = self.executor.map_groups(GRAPH, [made], (SHARED,), "repo_id", MergeShared())
            run.count(sum_counts(self.executor.collect(merged, COUNTS)))
            return [merged], frozenset()
        repo_id = self._refresh_state.repo_id
        every = dict.fromkeys(catalog.table(SHARED).column_names, ())
        before = read_stored(run, StoredRows(SHARED, repo_id, tuple(sorted(redone)), every, SHARED))
        batches = batches_of(self.executor.collect(made, SHARED)).get(SHARED, [])
        if are_same(SHARED, pa.Table.from_batches(batches, before.schema), before):
            return [], frozenset()
        wanted = [StoredRows(SHARED, repo_id, ALL_FILES, every, STORED + SHARED)]
        for name in (NODES, EDGES, PROPS, PROPS_MAP):
            columns = dict.fromkeys(catalog.table(name).column_names, ())
            wanted.append(StoredRows(name, repo_id, None, columns, STORED + name, is_unowned=True))
        stored = self.executor.stored(wanted)
        names = (SHARED, *(each.name for each in wanted))
        merged = self.executor.map_groups(GRAPH, [made, stored], names, "repo_id", MergeShared(redone))
        changed = [
            name
            for piece in self.executor.collect(merged, REDONE)
            for name in msgpack.decode(piece.data, type=list[str])
        ]
        return [merged], frozenset(changed)

    # Commits.

    def _commits(self, step: str) -> TableCommits:
        is_whole = self._is_whole(step)
        return TableCommits(self.run, self.executor, step, self._busy(step), self.refresh, is_whole=is_whole)

    def _in_background(self, step: str, commit: Callable[[], None]) -> None:
        """Commit tables while the next pass works."""

        def work() -> None:
            with self._step(step):
                commit()

        self._pending.append(self._background.submit(self.run.in_thread(work)))

    def _join(self) -> None:
        """Wait for the commits, and fail if one failed."""
        while self._pending:
            self._pending.pop(0).result()


def warn_if_source_changed(run: Run, repo_id: str) -> None:
    """Warn if the source that was read is not the one that was planned with."""
    digest = states_digest(read_file_states(run.store.root, repo_id, run.pins[FILES]))
    if digest != run.listed.digests[repo_id]:
        warning = f"{repo_id} changed while it was read"
        run.progress.update(EXTRACT, warning, last=True)
        Log(run_id=run.run_id, step=EXTRACT).warning(warning)
        run.source_was_read(repo_id, digest)


def _count_failures(run: Run, repo_id: str, extractors: Iterable[str]) -> None:
    with run.counting:
        counts = run.counts.setdefault(repo_id, Counter())
        for name in counts_of(counts, (FAILURES,)):
            del counts[name]
        counts.update(f"{FAILURES}/{name}" for name in extractors)


def write_rows(run: Run, name: str, rows: pa.Table) -> list[DataFile]:
    """Write a few rows as data files of a local table."""
    folder = local_folder(run.store, name)
    if folder is None:
        return []
    return write_in_order(TableWrite(run.store.table(name), folder, name), rows.to_batches())
