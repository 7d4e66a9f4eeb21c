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

Repositories for which the steps do the same (run for all files, or refresh) are worked on together.
Tests: `tests/unit/pipeline/test_passes.py`, `tests/unit/pipeline/test_refresh.py`,
`tests/spark/test_build.py`, `tests/spark/test_incremental.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import NamedTuple, Protocol

from msgspec import msgpack, structs

from codeanatomy.catalog.entry_points import RULES
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.store_policy import StorePolicy
from codeanatomy.delta.write.file_commits import new_files
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.worker import Task, extract_tables
from codeanatomy.file_view import Reads, TableReads, union_reads
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import TABLES
from codeanatomy.logs import Log
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.normalize.rules import READS as NORMALIZE_READS
from codeanatomy.pipeline.commits import Redone, commit_tables
from codeanatomy.pipeline.context import Refresh, Run, union
from codeanatomy.pipeline.executors.executor import Executor, Held, StoredRows, TableWrite
from codeanatomy.pipeline.file_stage import FileStage, StoredFileStage
from codeanatomy.pipeline.graph_rows import COPIES, FACTS, NAMED
from codeanatomy.pipeline.graph_stage import GraphStage, MergeShared
from codeanatomy.pipeline.impact import BEFORE
from codeanatomy.pipeline.key_collisions import refuse_equal_keys, refuse_refreshed_keys
from codeanatomy.pipeline.pieces import (
    COUNTS,
    DATA_FILE,
    KEY_OWNERS,
    KEYS,
    OUTCOME,
    PROGRAM,
    data_files,
    sum_costs,
    sum_counts,
)
from codeanatomy.pipeline.refreshes import (
    compare_relations,
    compare_tools,
    explain_impact,
    follow_feeds,
    keep_failures,
    merge_changed,
    read_outcome,
    relations_before,
)
from codeanatomy.pipeline.sinks import Sink, TableFolder
from codeanatomy.pipeline.solve_stage import RepositoryOutcome, Solve, SolveScope
from codeanatomy.pipeline.stored_rows import stored_rows
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.changes import FILES, TOOL_TABLES, Impact, read_file_states
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.plan.stored_sources import StoredSources
from codeanatomy.relate.compile.file_program import READS as COMPILE_READS
from codeanatomy.relate.compile.file_program import WITNESS_READS
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS
from codeanatomy.sources.digest import states_digest

EXTRACTED = tuple(name for name in extract_tables(EXTRACTORS) if name not in (*TOOL_TABLES, FAILURES))
STORED_PROGRAMS: TableReads = dict.fromkeys(("program", "rows_digest"), ())
# Of at most so many files a refresh writes the graph's rows where they are made: of more, in too small files.
WRITTEN_FILES = 16
# Bytes of sources from which on tables are written while repositories are solved: it takes another job.
LARGE_BYTES = 1024 * 1024
# By table: the name of its pieces.
GRAPH_PIECES = {**{name: name for name in (*TABLES, SHARED)}, **COPIES}
# Tables whose rows are counted where they are made, if the step works on whole repositories.
COUNTED = {NORMALIZE: FILE_TABLES, GRAPH: (*TABLES, SHARED, *COPIES, "graph_files")}
NOTHING: frozenset[str] = frozenset()


class StepContext(Protocol):
    """Runs a step or a part of it: its span, its time, its name in errors; the last part ends the step."""

    def __call__(self, step: str, *, is_last: bool = True) -> AbstractContextManager[None]: ...


class WorkGroup(NamedTuple):
    """Repositories that are worked on together."""

    # By which the groups commit to a table in their order.
    number: int
    repositories: tuple[str, ...]
    # Of each of the repositories; empty if they are built as a whole.
    refreshes: tuple[Refresh, ...]


def work_groups(run: Run) -> list[WorkGroup]:
    """Return the groups of repositories that have work; those that are built as a whole come first.

    The refreshes of a group have the same action in each step, and all of them have a SCIP index or none.
    """
    busy = [
        repo_id for repo_id in run.listed.listings if any(repo_id in step.busy for step in run.plan.steps)
    ]
    whole = tuple(repo_id for repo_id in busy if repo_id not in run.refreshes)
    alike: dict[tuple[object, ...], list[str]] = {}
    for repo_id in (each for each in run.refreshes if each in busy):
        actions = ((repo_id in step.runs_for, repo_id in step.refreshes) for step in run.plan.steps)
        alike.setdefault((has_index(run, repo_id), *actions), []).append(repo_id)
    members = [*([whole] if whole else []), *map(tuple, alike.values())]
    return [
        WorkGroup(number, each, tuple(run.refreshes[repo_id] for repo_id in each if repo_id in run.refreshes))
        for number, each in enumerate(members)
    ]


def has_index(run: Run, repo_id: str) -> bool:
    """Return whether a repository has a SCIP index, had one, or may get one."""
    scip = run.request.scip
    return scip.auto or repo_id in scip.given or run.counts.get(repo_id, Counter())[SCIP] > 0


class Passes:
    """The passes of a build over a group of repositories."""

    def __init__(self, run: Run, executor: Executor, group: WorkGroup, step: StepContext) -> None:
        self.run = run
        self.executor = executor
        self._number, self.repositories, self.refreshes = group
        self._step = step
        # By step: the repositories of the group that it has work for.
        planned = {each.name: each.busy for each in run.plan.steps}
        self._busy = {
            name: tuple(each for each in self.repositories if each in planned.get(name, ()))
            for name in (EXTRACT, NORMALIZE, RELATE, GRAPH)
        }
        # Pieces of pass one, and the files that they are about.
        self._views: list[Held] = []
        self._viewed: dict[str, frozenset[str]] = {}
        # Documents of a SCIP index are evidence for normalize. Whether there are any is known only after pass
        # one, so normalize is a part of pass two then.
        self._is_indexed = any(has_index(run, repo_id) for repo_id in self.repositories)
        # Commits, in their order.
        self._background = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        # Tables of the graph that are sorted and written while repositories are solved.
        self._writer = ThreadPoolExecutor(1)
        self._early: Future[dict[str, list[DataFile]]] | None = None
        # Programs of files that stay, which are read while pass one works.
        self._stored_programs: Future[Held] | None = None

    def execute(self) -> None:
        """Run the steps that have work."""
        with self._released():
            self._read_programs()
            self._first_pass()
            solved = [self._solve()] if self._busy[RELATE] else []
            self._join()
            self._second_pass(solved)
            self._join()

    def forecast(self) -> dict[str, tuple[Impact, ...]]:
        """Return what refreshes would redo, and why, by repository; nothing is committed."""
        compared: list[Held] = []
        with self._released():
            if self._busy[RELATE] and not self._is_whole(RELATE):
                self._read_programs()
                if self._busy[EXTRACT]:
                    self._extract(Sink(), {**self._busy, GRAPH: ()})
                    compare_tools(self.run, self.executor, self.refreshes, self._views, Sink())
                self._follow(NORMALIZE, RELATE, is_committed=not self._busy[EXTRACT])
                self._stored_first_pass(Sink())
                compared = compare_relations(self.executor, self.refreshes, self._solved(Sink()))
            self._follow(GRAPH, is_committed=False)
            explain_impact(self.run, self.executor, self.refreshes, compared)
        return {refresh.repo_id: refresh.impact for refresh in self.refreshes}

    @contextmanager
    def _released(self) -> Iterator[None]:
        """Free what the executor holds at the end of the block."""
        try:
            yield
        finally:
            self._background.shutdown(cancel_futures=True)
            self._writer.shutdown(cancel_futures=True)
            self.executor.release()

    # What is to be done.

    def _is_whole(self, step: str) -> bool:
        """Return whether a step works on whole repositories."""
        return not self.refreshes or self.repositories[0] in self.run.plan.step(step).runs_for

    def _files_to_redo(self, step: str, repo_id: str) -> frozenset[str]:
        """Return the files that normalize or relate redoes, with those that are gone."""
        every = self._files[repo_id] if self._is_whole(step) else NOTHING
        refresh = self.run.refreshes.get(repo_id)
        return every if refresh is None else every | refresh.in_feed(step, FILES)

    @property
    def _is_large(self) -> bool:
        """Whether tables are worth a job of their own."""
        return sum(self.run.repository_bytes[each] for each in self.repositories) >= LARGE_BYTES

    @cached_property
    def _files(self) -> dict[str, frozenset[str]]:
        """The ids of the files of each repository."""
        listings = {repo_id: self.run.listed.listings[repo_id] for repo_id in self.repositories}
        return {
            repo_id: frozenset(file_id(repo_id, entry.path) for entry in listing.entries)
            for repo_id, listing in listings.items()
        }

    def _sink(self, *names: str, unordered: Sequence[str] = ()) -> Sink:
        """Return the sink for tables that are written where their rows are made, in their order or not."""
        table, constants = self.run.store.table, {FAILURES: {"run_id": self.run.run_id}}
        return Sink(
            {
                name: TableFolder(
                    self._new_files(name), table(name), name not in unordered, constants.get(name, {})
                )
                for name in (*names, *unordered)
            }
        )

    def _new_files(self, name: str) -> NewFiles:
        return new_files(self.run.store, name, published=self.executor.publishes)

    @cached_property
    def _second_reads(self) -> Reads:
        """What pass two reads of the files."""
        return self._second_work(Sink()).reads

    def _first_work(self, sink: Sink, steps: Mapping[str, Collection[str]], passed: Reads) -> FileStage:
        run = self.run
        late = self._is_indexed
        return FileStage(
            run.settings.extract,
            NOTHING if late else frozenset(steps[NORMALIZE]),
            frozenset(steps[RELATE]),
            NOTHING if late else frozenset(steps[GRAPH]),
            run.request.profile,
            passed,
            {repo_id: run.chunk_count(repo_id) for repo_id in self.repositories},
            sink,
            self._stored,
        )

    @property
    def _passed(self) -> Reads:
        """What the stage of the graph reads of files of which it makes all rows, but for relations."""
        return {name: each for name, each in self._second_reads.items() if name != RELATIONS}

    @property
    def _stored(self) -> StoredSources:
        """The repositories in object stores."""
        listings = {repo_id: self.run.listed.listings[repo_id] for repo_id in self.repositories}
        uris = {repo_id: listing.uri for repo_id, listing in listings.items() if listing.uri}
        policy = StorePolicy.from_profile(self.run.settings.runtime)
        return StoredSources(policy, uris) if uris else StoredSources()

    def _second_work(self, sink: Sink) -> GraphStage:
        normalized = frozenset(self._busy[NORMALIZE] if self._is_indexed else ())
        explained = union(refresh.unexplained for refresh in self.refreshes)
        rules = (*self.run.settings.entry_points, *RULES)
        graphed, profile = frozenset(self._busy[GRAPH]), self.run.request.profile
        return GraphStage(normalized, graphed, profile, sink, rules, explained)

    # Pass one.

    def _read_programs(self) -> None:
        """Begin to read the stored programs of the repositories, which their solve needs."""
        if self._busy[RELATE] and not self._is_whole(RELATE):
            reads: Reads = {PROGRAMS: STORED_PROGRAMS}
            wanted = [rows for repo_id in self._busy[RELATE] for rows in stored_rows(repo_id, reads)]
            self._stored_programs = self._background.submit(self.executor.stored, wanted)

    def _first_pass(self) -> None:
        if self._busy[EXTRACT]:
            with self._step(EXTRACT, is_last=False):
                names = (*EXTRACTED, *(() if self._is_indexed else FILE_TABLES))
                tools = () if self.refreshes else TOOL_TABLES
                written = self._written_tables({each.repo_id: each.edited for each in self.refreshes} or None)
                fresh = self._extract(self._sink(*names, unordered=(FAILURES, *tools, *written)), self._busy)
            if self._busy[GRAPH] and not self.refreshes and not self._is_indexed and self._is_large:
                self._early = self._writer.submit(self._write_pieces, [fresh])
            self._in_background(EXTRACT, lambda: self._commit_extracted(fresh))
        self._follow(NORMALIZE, RELATE)
        self._stored_first_pass(self._sink(*FILE_TABLES))
        if self._busy[NORMALIZE] and not self._is_indexed:
            self._in_background(NORMALIZE, self._commit_normalized)

    def _follow(self, *steps: str, is_committed: bool = True) -> None:
        """Read the change feeds of steps that are refreshed: what they have is what these redo."""
        for step in steps:
            for refresh in self.refreshes if self._busy[step] and not self._is_whole(step) else ():
                uncommitted = {} if is_committed else {FILES: refresh.edited, **refresh.touched}
                follow_feeds(self.run, refresh, step, uncommitted)

    def _extract(self, sink: Sink, steps: Mapping[str, Collection[str]]) -> Held:
        """Read the files that are new or have changed, and make what steps make of a file alone."""
        run = self.run
        listings = {repo_id: run.listed.listings[repo_id] for repo_id in self._busy[EXTRACT]}
        tasks: list[Task] = list(tool_tasks(listings, run.request.types, run.request.scip))
        for refresh in self.refreshes if listings else ():
            listing, paths = listings[refresh.repo_id], refresh.read
            entries = tuple(entry for entry in listing.entries if entry.path in paths)
            listings[refresh.repo_id] = structs.replace(listing, entries=entries)
        total = sum(len(listing.entries) for listing in listings.values())
        if total:
            sources = [RepositoryListing(repo_id, listing) for repo_id, listing in listings.items()]
            tasks += partition_files(sources, run.settings.extract.partitions, run.cores)
        work = self._first_work(sink, steps, self._passed if self._is_indexed else {})
        with run.timed(EXTRACT):
            held = self.executor.map_tasks(EXTRACT, [msgpack.encode(task) for task in tasks], work, total)
        for repo_id in listings:
            refreshed = run.refreshes.get(repo_id)
            self._viewed[repo_id] = self._files[repo_id] if refreshed is None else refreshed.edited
        self._views.append(held)
        self._count(held)
        return held

    def _stored_first_pass(self, sink: Sink) -> None:
        """Normalize and compile files whose evidence is stored: extract did not read them in this run."""
        steps = {NORMALIZE: () if self._is_indexed else self._busy[NORMALIZE], RELATE: self._busy[RELATE]}
        later: Mapping[str, Collection[str]] = {**steps, GRAPH: ()}
        reads = union_reads(NORMALIZE_READS, COMPILE_READS, self._second_reads)
        wanted: list[StoredRows] = []
        selected: dict[str, frozenset[str]] = {}
        for repo_id in sorted({*steps[NORMALIZE], *steps[RELATE]}):
            viewed = self._viewed.get(repo_id, NOTHING)
            every = self._files[repo_id]
            own = {
                step: every & self._files_to_redo(step, repo_id) for step in steps if repo_id in steps[step]
            }
            for step in (each for each in own if not self._is_whole(each)):
                selected[step] = selected.get(step, NOTHING) | own[step]
            files = union(own.values()) - viewed
            if files:
                extracted = {name: reads[name] for name in reads if name in EXTRACTED}
                wanted += stored_rows(repo_id, extracted, files if self.refreshes else None)
                self._viewed[repo_id] = viewed | files
            # Pass two has the other tables from here, too.
            kept = files if repo_id not in self._busy[NORMALIZE] else files - own.get(NORMALIZE, files)
            if kept:
                normalized = {name: reads[name] for name in reads if name in FILE_TABLES}
                wanted += stored_rows(repo_id, normalized, kept if self.refreshes else None)
        if wanted:
            step = NORMALIZE if steps[NORMALIZE] else RELATE
            with self._step(step, is_last=False), self.run.timed(step):
                names, stored = {each.name for each in wanted}, self.executor.stored(wanted)
                work = StoredFileStage(
                    structs.replace(self._first_work(sink, later, self._passed), selected=selected)
                )
                held = self.executor.map_groups(step, [stored], names, "chunk", work)
            self._views.append(held)
            self._count(held)

    def _count(self, held: Held) -> None:
        """Count the rows of steps that work on whole repositories; a refresh counts what it commits."""
        counts = self._collect_counts(held)
        if self.refreshes:
            whole = [step for step in COUNTED if self._busy[step] and self._is_whole(step)]
            names = {name for step in whole for name in COUNTED[step]}
            counts = {
                repo_id: Counter({name: counted[name] for name in counted.keys() & names})
                for repo_id, counted in counts.items()
            }
        self.run.count(counts)

    def _collect_counts(self, held: Held) -> dict[str, Counter[str]]:
        """Return the counts of a frame; its costs are added to those of the run."""
        pieces = self.executor.results(held, COUNTS)
        self.run.add_costs(sum_costs(pieces))
        return sum_counts(pieces)

    def _commit_extracted(self, fresh: Held) -> None:
        run, edited = self.run, union(refresh.edited for refresh in self.refreshes)
        extracted = self._from_tasks(EXTRACTED, [fresh], edited if self.refreshes else None)
        failures = structs.replace(self._from_tasks((FAILURES,), [fresh])[FAILURES], is_added=True)
        tools = self._differing_tool_rows() if self.refreshes else self._from_tasks(TOOL_TABLES, [fresh])
        counts = sum_counts(self.executor.results(fresh, COUNTS)) if self.refreshes else {}
        for refresh in self.refreshes:
            kept = keep_failures(run, refresh, counts.get(refresh.repo_id, {}))
            failures = structs.replace(failures, files=[*failures.files, *kept])
        with run.timed("extract_commit"):
            self._commit(EXTRACT, {**extracted, **tools, FAILURES: failures})
        for repo_id in self._busy[EXTRACT]:
            warn_if_source_changed(run, repo_id)

    def _differing_tool_rows(self) -> dict[str, Redone]:
        """Return the rows of tools for files about which they reported other rows before."""
        sink = self._sink(unordered=TOOL_TABLES)
        held, outcomes = compare_tools(self.run, self.executor, self.refreshes, self._views, sink)
        redone = self._from_tasks(TOOL_TABLES, held, NOTHING)
        for name in TOOL_TABLES:
            owners = union(refresh.touched_in(name) for refresh in self.refreshes)
            shared = [repo_id for repo_id, outcome in outcomes.items() if name in outcome.shared]
            redone[name] = structs.replace(redone[name], owners=owners, shared=shared)
        return redone

    def _commit_normalized(self) -> None:
        if self._is_whole(NORMALIZE):
            redone = self._from_tasks(FILE_TABLES, self._views)
        else:
            owners = union(refresh.in_feed(NORMALIZE, FILES) for refresh in self.refreshes)
            redone = self._from_tasks(FILE_TABLES, self._views, owners)
        with self.run.timed("normalize_commit"):
            self._commit(NORMALIZE, redone)

    # The solve.

    def _solve(self) -> Held:
        with self._step(RELATE):
            solved = self._solved(self._sink(RELATIONS, PROGRAMS, unordered=(DIAGNOSTICS,)))
            self._join()
            with self.run.timed("relate_commit"):
                self._commit_solved(solved)
        return solved

    def _solved(self, sink: Sink) -> Held:
        """Solve the repositories; of refreshes, find the files whose relations differ."""
        run, is_whole = self.run, self._is_whole(RELATE)
        listings = run.listed.listings
        scopes = {repo_id: SolveScope(package=listings[repo_id].package) for repo_id in self._busy[RELATE]}
        wanted = [
            rows
            for repo_id in scopes
            if repo_id not in self._busy[EXTRACT]
            for rows in stored_rows(repo_id, WITNESS_READS)
        ]
        for refresh in () if is_whole else self.refreshes:
            package = listings[refresh.repo_id].package
            replaced, needed = refresh.in_feed(RELATE, FILES), refresh.in_feed(RELATE)
            scopes[refresh.repo_id] = SolveScope(replaced, needed, package)
        inputs = [*self._views, *([self.executor.stored(wanted)] if wanted else ())]
        inputs += [self._stored_programs.result()] if self._stored_programs else []
        names = (PROGRAM, PROGRAMS, *TOOL_TABLES)
        with run.timed(RELATE):
            work = Solve(scopes, sink, max(1, run.cores_of_task // len(scopes)))
            solved = self.executor.map_groups(RELATE, inputs, names, "repo_id", work)
        counts = self._collect_counts(solved)
        for piece in self.executor.results(solved, OUTCOME):
            run.imports[piece.repo_id] = msgpack.decode(piece.data, type=RepositoryOutcome).imports
        if is_whole:
            run.count(counts)
        else:
            read_outcome(run, self.executor, self.refreshes, solved)
        return solved

    def _normalized_files(self, refresh: Refresh) -> frozenset[str]:
        """Return the files of a refresh that normalize redoes, with those that only a SCIP index has."""
        redone = refresh.in_feed(NORMALIZE, FILES, SCIP) | refresh.missing
        return redone if self._busy[NORMALIZE] else NOTHING

    def _commit_solved(self, solved: Held) -> None:
        redone = self._from_tasks((RELATIONS, DIAGNOSTICS, PROGRAMS), [solved])
        if not self._is_whole(RELATE):
            emitted = union(refresh.gone | refresh.emitted for refresh in self.refreshes)
            differing = union(refresh.touched_in(RELATIONS) for refresh in self.refreshes)
            owners = {RELATIONS: differing, DIAGNOSTICS: differing, PROGRAMS: emitted}
            redone = {name: structs.replace(each, owners=owners[name]) for name, each in redone.items()}
        self._commit(RELATE, redone)

    # Pass two.

    def _second_pass(self, solved: Sequence[Held]) -> None:
        """Make the graph of the files, and normalize them where a SCIP index is evidence."""
        normalized = self._is_indexed and self._busy[NORMALIZE]
        if not self._busy[GRAPH] and not normalized:
            if self.refreshes and solved:
                with self._step(RELATE, is_last=False):
                    compared = compare_relations(self.executor, self.refreshes, solved[0])
                    explain_impact(self.run, self.executor, self.refreshes, compared)
            return
        step = GRAPH if self._busy[GRAPH] else NORMALIZE
        with self._step(step):
            self._follow(GRAPH)
            files = self._second_files()
            wanted = self._second_inputs(files)
            inputs = [*self._views, *solved, *([self.executor.stored(wanted)] if wanted else ())]
            with self.run.timed(step):
                work = self._second_work(self._sink(*FILE_TABLES, unordered=self._written_tables(files)))
                names = {*self._second_reads, BEFORE, FACTS, NAMED}
                made = self.executor.map_groups(step, inputs, names, "chunk", work)
            self._count(made)
            if self.refreshes:
                explain_impact(self.run, self.executor, self.refreshes, [made])
            if normalized:
                with self.run.timed("normalize_commit"):
                    owners = None if files is None else union(files.values())
                    self._commit(NORMALIZE, self._from_tasks(FILE_TABLES, [made], owners))
            if self._busy[GRAPH]:
                self._commit_graph(made, files)
        if normalized and step != NORMALIZE:
            # Its tables are complete only now.
            with self._step(NORMALIZE):
                pass

    def _second_files(self) -> dict[str, frozenset[str]] | None:
        """Return the files that pass two works on, by repository; None: all files of the repositories."""
        if self._is_whole(GRAPH if self._busy[GRAPH] else NORMALIZE):
            return None
        # It normalizes all files that it sees, where it normalizes any.
        return {
            refresh.repo_id: refresh.in_feed(GRAPH)
            | self._normalized_files(refresh)
            | self._viewed.get(refresh.repo_id, NOTHING)
            for refresh in self.refreshes
        }

    def _written_tables(self, files: Mapping[str, frozenset[str]] | None) -> tuple[str, ...]:
        """Return the tables of the graph that pass two writes itself, which saves a job: if files are few."""
        are_few = files is not None and len(union(files.values())) <= WRITTEN_FILES
        return tuple(GRAPH_PIECES) if are_few and self._busy[GRAPH] else ()

    def _second_inputs(self, files: Mapping[str, frozenset[str]] | None) -> list[StoredRows]:
        """Return the stored rows of files that pass two works on and the passes before have not passed on."""
        wanted = relations_before(self.refreshes)
        for repo_id in dict.fromkeys(
            (*self._busy[GRAPH], *(self._busy[NORMALIZE] if self._is_indexed else ()))
        ):
            every = self._files[repo_id] if files is None else files[repo_id]
            for name, columns in self._second_reads.items():
                passed = self._passed_files(name, repo_id)
                if passed is not None and not every <= passed:
                    owners = None if files is None and not passed else every - passed
                    wanted += stored_rows(repo_id, {name: columns}, owners)
        return wanted

    def _passed_files(self, name: str, repo_id: str) -> frozenset[str] | None:
        """Return the files whose rows of a table are in pieces, or are made by pass two; None: all files."""
        viewed = self._viewed.get(repo_id, NOTHING)
        if name in TOOL_TABLES:
            return None if repo_id in self._busy[EXTRACT] else NOTHING
        if name in FILE_TABLES and self._is_indexed and repo_id in self._busy[NORMALIZE]:
            return None
        if name in (RELATIONS, DIAGNOSTICS):
            if repo_id not in self._busy[RELATE]:
                return NOTHING
            if self._is_whole(RELATE):
                return None
            return viewed & self._files_to_redo(RELATE, repo_id) | self.run.refreshes[repo_id].emitted
        return viewed

    def _commit_graph(self, made: Held, files: Mapping[str, frozenset[str]] | None) -> None:
        run, executor = self.run, self.executor
        held = [*self._views, made]
        keys = [piece.data for each in held for piece in executor.results(each, KEYS)]

        def owners() -> Iterator[bytes]:
            return (piece.data for each in held for piece in executor.read(each, KEY_OWNERS))

        if files is None:
            refuse_equal_keys(run, self._busy[GRAPH], keys, owners)
            work = MergeShared(frozenset(self._busy[GRAPH]))
            merged = executor.map_groups(GRAPH, [made], (SHARED,), "repo_id", work)
            run.count(self._collect_counts(merged))
            shared, changed = [merged], dict[str, frozenset[str]]()
        else:
            refuse_refreshed_keys(run, self.refreshes, union(files.values()), keys, owners)
            shared, changed = merge_changed(run, executor, made, files)
        with run.timed("graph_commit"):
            tables = {
                name: structs.replace(each, shared=changed.get(GRAPH_PIECES[name], ()))
                for name, each in self._write_graph(held, shared, files).items()
            }
            self._commit(GRAPH, tables)

    # Commits.

    def _from_tasks(
        self, names: Iterable[str], held: Sequence[Held], owners: Collection[str] | None = None
    ) -> dict[str, Redone]:
        """Return tables that tasks have written."""
        files = data_files(piece for each in held for piece in self.executor.results(each, DATA_FILE))
        return {name: Redone(files.get(name, ()), owners) for name in names}

    def _write_graph(
        self, made: Sequence[Held], shared: Sequence[Held], files: Mapping[str, frozenset[str]] | None
    ) -> dict[str, Redone]:
        """Write the tables of the graph from pieces, but for rows that were written before."""
        redone = self._from_tasks(GRAPH_PIECES, made, None if files is None else union(files.values()))
        early = {} if self._early is None else self._early.result()
        left = [*(made[-1:] if early else made), *shared]
        late = self._write_pieces(left)
        return {
            name: structs.replace(each, files=[*each.files, *early.get(name, ()), *late.get(name, ())])
            for name, each in redone.items()
        }

    def _write_pieces(self, held: Sequence[Held]) -> dict[str, list[DataFile]]:
        """Sort the rows of the graph's tables in pieces, and write them to data files."""
        table = self.run.store.table
        writes = [
            TableWrite(self._new_files(name), table(name), pieces, name in COPIES)
            for name, pieces in GRAPH_PIECES.items()
        ]
        return self.executor.write_files(held, writes)

    def _commit(self, step: str, redone: Mapping[str, Redone]) -> None:
        repositories, is_whole = self._busy[step], self._is_whole(step)
        commit_tables(self.run, step, repositories, redone, is_whole=is_whole, sequence=self._number)

    def _in_background(self, step: str, commit: Callable[[], None]) -> None:
        """Commit tables while the next pass works; a refresh waits: it reads what it commits."""

        def work() -> None:
            with self._step(step):
                commit()

        self._pending.append(self._background.submit(work))
        if self.refreshes:
            self._join()

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
