"""Hold what the stages of a group of repositories share: what there is to do, pieces, sinks and commits.

    build = GroupBuild(run, executor, group, step)
    build.busy["graph"]                       # repositories of the group that the step has work for
    build.is_whole("graph")                   # whether it works on all of their files
    build.commit_later("extract", commit)     # while the next stage works

Tests: `tests/unit/pipeline/test_stages.py`, `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.write.file_commits import new_files
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.commits import TableUpdate, commit_tables
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.executor import Executor, Held
from codeanatomy.pipeline.frontier import NOTHING, Files, FilesByTable, Frontier
from codeanatomy.pipeline.tasks.pieces import COUNTS, DATA_FILE, data_files, sum_costs, sum_counts
from codeanatomy.pipeline.tasks.sinks import Sink, TableFolder
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.feeds import changed_paths, read_feeds
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE


class StepContext(Protocol):
    """Runs a step or a part of it: its span, its time, its name in errors; the last part ends the step."""

    def __call__(self, step: str, *, is_last: bool = True) -> AbstractContextManager[None]: ...


class WorkGroup(NamedTuple):
    """Repositories that are worked on together; `is_refresh` if none of them is built as a whole."""

    # By which the groups commit to a table in their order.
    number: int
    repositories: tuple[str, ...]
    is_refresh: bool


class Stage(NamedTuple):
    """A stage of a build: what it maps over, what it reads, and what it makes of that."""

    name: str
    # Tasks on sources, or groups of pieces: chunks of files, repositories, ranges of tables.
    by: Literal["task", "chunk", "repo_id", "table"]
    # Names of pieces of stages before, and of tables for files that these have not worked on.
    reads: tuple[str, ...]
    # Tables that it writes where their rows are made.
    writes: tuple[str, ...]
    # Names of pieces for later stages.
    passes_on: tuple[str, ...]
    run: Callable[[GroupBuild, Stage], None]


class GroupBuild:
    """The build of a group of repositories, on its way from stage to stage."""

    def __init__(
        self, run: Run, executor: Executor, group: WorkGroup, step: StepContext, *, writes: bool = True
    ) -> None:
        self.run = run
        self.executor = executor
        self.number, self.repositories, self.is_refresh = group
        self.step = step
        # Whether tables are written; else only the frontiers are found.
        self.writes = writes
        planned = {each.name: each.busy for each in run.plan.steps}
        self.busy = {
            name: tuple(each for each in self.repositories if each in planned.get(name, ()))
            for name in (EXTRACT, NORMALIZE, RELATE, GRAPH)
        }
        # Documents of a SCIP index are evidence for normalize. Whether there are any is known only after the
        # files were read, so files are normalized in the stage of the graph then.
        self.is_indexed = any(has_index(run, repo_id) for repo_id in self.repositories)
        # Pieces about files, and those files; pieces of the solve, and of the graph.
        self.files: list[Held] = []
        self.seen: dict[str, Files] = {}
        self.solved: list[Held] = []
        self.graph: list[Held] = []
        # Files of the graph that are worked on, by repository; None: all.
        self.graph_files: FilesByTable | None = None
        # Whether its tables are written where their last rows are made: of few files it saves a job.
        self.at_once = False
        # Commits in their order, and what else is done beside the stages: a refresh reads stored programs, a
        # whole build writes tables.
        self._commits = ThreadPoolExecutor(1)
        self.beside = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        # Programs of files that stay, which are read beside the stages; tables written beside the solve.
        self.stored_programs: Future[Held] | None = None
        self.written: Future[dict[str, list[DataFile]]] | None = None

    @contextmanager
    def released(self) -> Iterator[None]:
        """Free what the executor holds at the end of the block."""
        try:
            yield
        except BaseException:
            if self.written is not None and not self.written.done():
                # The tables would be of no use.
                self.executor.cancel()
            raise
        finally:
            self._commits.shutdown(cancel_futures=True)
            self.beside.shutdown(cancel_futures=True)
            self.executor.release()

    # What there is to do.

    @property
    def solves(self) -> bool:
        """Whether repositories are solved; only a refresh is solved to find what it reaches."""
        return bool(self.busy[RELATE]) and (self.writes or not self.is_whole(RELATE))

    def is_whole(self, step: str) -> bool:
        """Return whether a step works on all files of the repositories."""
        return not self.is_refresh or self.repositories[0] in self.run.plan.step(step).runs_for

    @property
    def frontiers(self) -> list[Frontier]:
        """What the refreshes of the group reach."""
        return [self.run.frontiers[repo_id] for repo_id in self.repositories] if self.is_refresh else []

    def extend(self, frontier: Frontier) -> None:
        """Replace the frontier of a repository."""
        self.run.frontiers[frontier.repo_id] = frontier

    @cached_property
    def listed(self) -> FilesByTable:
        """The files of each repository."""
        listings = {repo_id: self.run.listed.listings[repo_id] for repo_id in self.repositories}
        return {
            repo_id: frozenset(file_id(repo_id, entry.path) for entry in listing.entries)
            for repo_id, listing in listings.items()
        }

    def files_to_redo(self, step: str, repo_id: str) -> Files:
        """Return the files that normalize or relate redoes, with those that are gone."""
        every = self.listed[repo_id] if self.is_whole(step) else NOTHING
        return every | self.run.frontiers[repo_id].files_in(step, FILES) if self.is_refresh else every

    def follow_feeds(self, step: str, *, is_committed: bool = True) -> None:
        """Find what a step redoes that follows feeds: files with changes in its inputs after its cursor."""
        run = self.run
        for frontier in self.frontiers if self.busy[step] and not self.is_whole(step) else ():
            repo_id, root = frontier.repo_id, run.store.root
            cursor = run.base.cursors[repo_id][step]
            changes = read_feeds(root, run.plan.step(step).inputs, repo_id, cursor, run.pins)
            # What would be in the feeds, where nothing is committed.
            more = {} if is_committed else {FILES: frontier.edited, **frontier.differing}
            files = {
                name: changes.files.get(name, NOTHING) | more.get(name, NOTHING)
                for name in changes.files.keys() | more.keys()
            }
            hows: dict[str, str] = {}
            if files.get(FILES, NOTHING) - frontier.edited:
                # Files that earlier runs have extracted.
                windows = (window for window in changes.windows if window.table_name == FILES)
                hows = {
                    path: how for each in windows for path, how in changed_paths(root, each, repo_id).items()
                }
            self.extend(frontier.with_feed(step, files, changes.windows, hows))

    # Counts, sinks and commits.

    def count(self, held: Held, counted: Mapping[str, Collection[str]]) -> None:
        """Count the rows of steps that work on whole repositories; a refresh counts what it commits."""
        counts = self.counts_of(held)
        if self.is_refresh:
            whole = [step for step in counted if self.busy[step] and self.is_whole(step)]
            names = {name for step in whole for name in counted[step]}
            counts = {
                repo_id: Counter({name: own[name] for name in own.keys() & names})
                for repo_id, own in counts.items()
            }
        self.run.count(counts)

    def counts_of(self, held: Held) -> dict[str, Counter[str]]:
        """Return the counts of a frame; its costs are added to those of the run."""
        pieces = self.executor.results(held, COUNTS)
        self.run.add_costs(sum_costs(pieces))
        return sum_counts(pieces)

    def sink(self, *names: str, unordered: Sequence[str] = ()) -> Sink:
        """Return the sink for tables that are written where their rows are made, in their order or not."""
        if not self.writes:
            return Sink()
        table, constants = self.run.store.table, {FAILURES: {"run_id": self.run.run_id}}
        return Sink(
            {
                name: TableFolder(
                    self.new_files(name), table(name), name not in unordered, constants.get(name, {})
                )
                for name in (*names, *unordered)
            }
        )

    def new_files(self, name: str) -> NewFiles:
        """Return where files of a table are written."""
        return new_files(self.run.store, name, published=self.executor.publishes)

    def updates(
        self, names: Iterable[str], held: Sequence[Held], owners: Collection[str] | None = None
    ) -> dict[str, TableUpdate]:
        """Return the updates of tables that tasks have written: of some files, or of whole repositories."""
        files = data_files(piece for each in held for piece in self.executor.results(each, DATA_FILE))
        return {name: TableUpdate(files.get(name, ()), owners) for name in names}

    def commit(self, step: str, updates: Mapping[str, TableUpdate]) -> None:
        """Commit the tables of a step."""
        repositories, is_whole = self.busy[step], self.is_whole(step)
        commit_tables(self.run, step, repositories, updates, is_whole=is_whole, sequence=self.number)

    def commit_later(self, step: str, commit: Callable[[], None]) -> None:
        """Commit tables while the next stage works; a refresh waits: it reads what it commits."""
        if not self.writes:
            return

        def work() -> None:
            with self.step(step):
                commit()

        self._pending.append(self._commits.submit(work))
        if self.is_refresh:
            self.join_commits()

    def join_commits(self) -> None:
        """Wait for the commits, and fail if one failed."""
        while self._pending:
            self._pending.pop(0).result()


def work_groups(run: Run) -> list[WorkGroup]:
    """Return the groups of repositories that have work; those that are built as a whole come first.

    All repositories of a group have a SCIP index or none; refreshes have the same action in each step.
    """
    busy = [
        repo_id for repo_id in run.listed.listings if any(repo_id in step.busy for step in run.plan.steps)
    ]
    alike: dict[tuple[object, ...], list[str]] = {}
    whole = [repo_id for repo_id in busy if repo_id not in run.frontiers]
    for repo_id in (*whole, *(each for each in run.frontiers if each in busy)):
        is_refresh = repo_id in run.frontiers
        actions = ((repo_id in step.runs_for, repo_id in step.refreshes) for step in run.plan.steps)
        key = (is_refresh, has_index(run, repo_id), *(actions if is_refresh else ()))
        alike.setdefault(key, []).append(repo_id)
    return [
        WorkGroup(number, tuple(members), bool(is_refresh))
        for number, ((is_refresh, *_), members) in enumerate(alike.items())
    ]


def has_index(run: Run, repo_id: str) -> bool:
    """Return whether a repository has a SCIP index, had one, or may get one."""
    scip = run.request.scip
    return scip.auto or repo_id in scip.given or run.counts.get(repo_id, Counter())[SCIP] > 0
