"""Commit what the passes have made, table by table: replace rows of whole repositories, or of files.

    commits = TableCommits(run, executor, "extract", ["requests"], None, is_whole=True)
    commits.all({"ast_files_v1": Redone(files), ...})

Data files of a local lake are there already, so a commit is one entry of a table's log
(`delta.write.adopt`); rows of other lakes are in pieces, and Spark writes them. Several tables are committed
at the same time. Tests: `tests/unit/pipeline/test_refresh.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from msgspec import Struct

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.light_feed import changed_owners
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.store import LakeTables
from codeanatomy.delta.write.adopt import adopt_files, local_folder
from codeanatomy.errors import FeedLost, NeedsSpark
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.logs import Log
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.executor import Executor, Held, TableWrite
from codeanatomy.pipeline.refreshes import Refresh

# Numbers of the commits of a group; those of whole repositories come first.
FIRST_SEQUENCE = 10
# Commits at the same time: each waits for the disk more than it computes.
COMMITTERS = 8


class Redone(Struct, frozen=True):
    """New rows of a table, and what they replace."""

    # Data files with rows of the table.
    files: Sequence[DataFile] = ()
    # Files whose rows are replaced; None: all rows of the repositories.
    owners: Collection[str] | None = None
    # Whether rows that belong to no file are replaced, too.
    is_shared: bool = False
    # Whether rows are only added.
    is_added: bool = False
    # What holds the rows, where only Spark can write the table.
    held: Sequence[Held] = ()
    write: TableWrite | None = None


class TableCommits:
    """Commits of a step, for repositories that are built as a whole or for one that is refreshed."""

    def __init__(
        self,
        run: Run,
        executor: Executor,
        step: str,
        repositories: Sequence[str],
        refresh: Refresh | None,
        *,
        is_whole: bool,
    ) -> None:
        self._run = run
        self._executor = executor
        self._step = step
        self._repositories = sorted(repositories)
        self._refresh = refresh
        # Whether the step works on all files of the repositories, also in a refresh.
        self._is_whole = is_whole

    def all(self, redone: Mapping[str, Redone], sequence: int = 0) -> None:
        """Commit tables at the same time, and report progress."""
        run, rows = self._run, 0
        # Every group of repositories has numbers of its own, in the order in which the groups commit.
        base = 0 if self._refresh is None else FIRST_SEQUENCE * (1 + self._refresh.number)
        commit = run.commit(self._step, base + sequence)
        inherit = run.in_thread
        with ThreadPoolExecutor(COMMITTERS) as pool:
            pending = {
                pool.submit(inherit(self._committing(name, each, commit))): name
                for name, each in redone.items()
            }
            for ready, future in enumerate(as_completed(pending), start=1):
                if future.exception() is not None:
                    pool.shutdown(cancel_futures=True)
                done, name = future.result(), pending[future]
                if done.committed or done.repeated or self._is_whole:
                    run.done(self._step, name, done)
                    if self._refresh is not None and not self._is_whole:
                        _count(run, self._refresh.repo_id, name, done)
                rows += done.rows
                status = f"{ready}/{len(redone)} tables, {rows:,} rows"
                run.progress.update("commit", status, last=ready == len(redone))

    def _committing(self, name: str, redone: Redone, commit: Commit) -> Callable[[], Committed]:
        def work() -> Committed:
            self._run.check()
            return self._committed(name, redone, commit)

        return work

    def _committed(self, name: str, redone: Redone, commit: Commit) -> Committed:
        run, table = self._run, self._run.store.table(name)
        whole = redone.owners is None
        owners = () if redone.is_added else self._repositories if whole else sorted(redone.owners or ())
        by = "repo_id" if whole or table.owner is None else table.owner
        if local_folder(run.store, name) is None and redone.write is not None:
            return self._executor.commit_rows(redone.held, redone.write, owners, by, commit)

        def adopt(store: LakeTables) -> Committed:
            return adopt_files(
                store,
                name,
                redone.files,
                owners,
                commit,
                by=by,
                repos=() if whole else self._repositories,
                shared_repos=self._repositories if redone.is_shared else (),
            )

        try:
            return adopt(run.store)
        except NeedsSpark:
            # For example a table that gets a column and has rows of other repositories.
            return adopt(run.spark_store)


def _count(run: Run, repo_id: str, name: str, done: Committed) -> None:
    with run.counting:
        counts = run.counts.setdefault(repo_id, Counter())
        counts[name] += done.rows - (done.rows_deleted if name != FAILURES else 0)


def read_change_feeds(run: Run, refresh: Refresh, step: str, *names: str) -> None:
    """Read from the change feeds of tables which files have changed rows, and record the windows.

    The cursor of a repository is the version that its newest published row pins: it moves with publication.
    """
    row = run.base.repositories[refresh.repo_id]
    cursors = {pin.table_name: pin.version for pin in row.output_pins}
    for name in names:
        first, last = cursors.get(name, -1) + 1, run.pins[name]
        owner = run.store.table(name).owner or ""
        try:
            owners = changed_owners(
                run.store.root, name, first, last, owner, refresh.repo_id, allow_out_of_range=True
            )
        except FeedLost as lost:
            # The changed files are known from the comparison, too.
            warning = f"{lost.message}: compared with the published rows instead"
            run.progress.update("feed", warning, last=True)
            Log(run_id=run.run_id, step=step).warning(warning)
            continue
        refresh.touched[name] = owners
        if first <= last:
            refresh.windows += (ChangeWindow(name, first, last),)
