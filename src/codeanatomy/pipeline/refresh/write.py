"""Replace rows by owner: write data files and make one commit per table.

    replace_rows(run, refresh, "relate", {"relations_v1": Redone(rows, owners)})

New rows are new data files. Where those that they replace share a file with rows that stay, they leave it by
a deletion vector (`delta.write.adopt`), so what is written is what was redone.

Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.events import Committed
from codeanatomy.delta.light_feed import changed_owners
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.store import LakeTables
from codeanatomy.delta.write.adopt import adopt_files, local_folder
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.errors import FeedLost, NeedsSpark, StorageFailure
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.logs import Log
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.refresh.refresh_state import Refresh
from codeanatomy.pipeline.sorted_tables import in_order, sort_keys

# Sequence of the commits of the first refresh of a run; other steps use those below.
FIRST_SEQUENCE = 10
WRITERS = 4


class Redone(Struct, frozen=True):
    """New rows of a table, and the files whose rows they replace completely."""

    rows: pa.Table
    owners: Collection[str]
    # Whether the rows without an owner are replaced, too.
    is_shared: bool = False
    # Whether the rows are those of another table in another order.
    is_copy: bool = False
    # Further rows, already written as data files.
    files: tuple[DataFile, ...] = ()


def replace_rows(run: Run, refresh: Refresh, step: str, redone: Mapping[str, Redone]) -> None:
    """Commit the rows that a step has redone, several tables at a time."""
    with ThreadPoolExecutor(WRITERS) as pool:
        pending = {
            name: pool.submit(_replaced, run, refresh, step, name, each) for name, each in redone.items()
        }
        for name, future in pending.items():
            done = future.result()
            if done.committed or done.repeated:
                run.done(step, name, done)
                _count(run, refresh.repo_id, name, done)


def _replaced(run: Run, refresh: Refresh, step: str, name: str, redone: Redone) -> Committed:
    table = run.store.table(name)
    _refuse_others(table, redone)
    files = [*redone.files, *written_rows(run, table, redone.rows, is_copy=redone.is_copy)]
    run.check()

    def adopt(store: LakeTables) -> Committed:
        return adopt_files(
            store,
            name,
            files,
            sorted(redone.owners),
            run.commit(step, FIRST_SEQUENCE + refresh.number),
            by=table.owner or "repo_id",
            repos=(refresh.repo_id,),
            shared_repos=(refresh.repo_id,) if redone.is_shared else (),
        )

    try:
        return adopt(run.store)
    except NeedsSpark:
        # For example a table whose policy has changed.
        return adopt(run.spark_store)


def _refuse_others(table: Table, redone: Redone) -> None:
    """Rows of a file that is not replaced would be there twice."""
    if table.owner is None:
        return
    others = set(pc.unique(redone.rows.column(table.owner)).to_pylist()) - set(redone.owners)
    if others - ({None} if redone.is_shared else set()):
        raise StorageFailure(
            f"rows of {table.name} belong to files that are not redone",
            "report it as a bug, with the output of codeanatomy doctor",
        )


def written_rows(run: Run, table: Table, rows: pa.Table, *, is_copy: bool) -> list[DataFile]:
    """Write rows as data files, which a commit then adds to the table."""
    folder = local_folder(run.store, table.name)
    if folder is None:
        raise StorageFailure(f"{table.name} can only be written by Spark", "build with --full")
    if not rows.num_rows:
        return []
    return write_files(folder, table, in_order(sort_keys(table), rows.to_batches()), is_copy=is_copy)


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
