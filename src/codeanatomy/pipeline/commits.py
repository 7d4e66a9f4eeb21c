"""Commit what the passes have made, table by table: replace rows of whole repositories, or of files.

    commit_tables(run, "extract", ["requests"], {"ast_files_v1": TableUpdate(files), ...}, is_whole=True)

Data files are there already, so a commit is one entry of a table's log (`delta.write.file_commits`). Several
tables are committed at the same time. Tests: `tests/unit/pipeline/test_refresh.py`,
`tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from msgspec import Struct

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.errors import NeedsSpark
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.pipeline.context import Run

# Commits at the same time: each waits for the disk more than it computes.
COMMITTERS = 8


class TableUpdate(Struct, frozen=True):
    """New rows of a table, and what they replace."""

    # Data files with rows of the table.
    files: Sequence[DataFile] = ()
    # Files whose rows are replaced; None: all rows of the repositories.
    owners: Collection[str] | None = None
    # Repositories whose rows of no file are replaced, too.
    shared: Collection[str] = ()
    # Whether rows are only added.
    is_added: bool = False


def commit_tables(
    run: Run,
    step: str,
    repositories: Sequence[str],
    updates: Mapping[str, TableUpdate],
    *,
    is_whole: bool,
    sequence: int = 0,
) -> None:
    """Commit tables of a step at the same time; `is_whole` if it works on all files of the repositories."""
    commit, rows = run.commit(step, sequence), 0
    with ThreadPoolExecutor(COMMITTERS) as pool:
        pending = {
            pool.submit(_commit_table, run, sorted(repositories), name, each, commit): name
            for name, each in updates.items()
        }
        for ready, future in enumerate(as_completed(pending), start=1):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            done, name = future.result(), pending[future]
            if done.committed or done.repeated or is_whole:
                run.done(step, name, done)
                if not is_whole and name != FAILURES:
                    _count_refreshed(run, repositories, name, done)
            rows += done.rows
            status = f"{ready}/{len(updates)} tables, {rows:,} rows"
            run.progress.update("commit", status, last=ready == len(updates))


def _count_refreshed(run: Run, repositories: Sequence[str], name: str, done: Committed) -> None:
    """Count what a refresh commits; what it removes is known for all of its repositories together."""
    if len(repositories) > 1:
        run.recount.add(name)
    else:
        run.count({repo_id: {name: done.rows - done.rows_deleted} for repo_id in repositories})


def _commit_table(
    run: Run, repositories: Sequence[str], name: str, update: TableUpdate, commit: Commit
) -> Committed:
    run.check()
    whole, owner = update.owners is None, run.store.table(name).owner
    owners = () if update.is_added else repositories if whole else sorted(update.owners or ())
    by = "repo_id" if whole or owner is None else owner

    def commit_to(store: LakeTables) -> Committed:
        repos, shared = () if whole else repositories, sorted(update.shared)
        return commit_files(
            store, name, update.files, owners, commit, by=by, repos=repos, shared_repos=shared
        )

    try:
        return commit_to(run.store)
    except NeedsSpark:
        # For example a table that gets a column and has rows of other repositories.
        return commit_to(run.spark_store)
