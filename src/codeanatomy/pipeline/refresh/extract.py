"""Extract the files that changed; run whole-program tools on all of them.

    redone = extract_changes(run, refresh) # by table, rows and the files they are all rows of
    refresh_extract(run)                   # the same, committed

SCIP indexes and type checker reports are made again as a whole and compared with the stored rows: only files
whose rows differ count as changed. Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES, table_columns
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.extract.worker import PackedChunk, Task, extract_tables, extract_task
from codeanatomy.pipeline.context import Run, counts_of
from codeanatomy.pipeline.extract_step import warn_if_source_changed
from codeanatomy.pipeline.refresh.file_tables import by_owner
from codeanatomy.pipeline.refresh.processes import map_in_forks, processes_of
from codeanatomy.pipeline.refresh.refresh_state import Refresh, ids_of
from codeanatomy.pipeline.refresh.row_streams import are_same, joined
from codeanatomy.pipeline.refresh.write import Redone, read_change_feeds, replace_rows
from codeanatomy.pipeline.scip_indexes import scip_tasks
from codeanatomy.pipeline.type_checker import type_tasks
from codeanatomy.plan.changes import FILES, PROGRAM_TABLES
from codeanatomy.plan.steps import EXTRACT
from codeanatomy.sources.digest import stored_file_states


def refresh_extract(run: Run) -> None:
    """Read the changed files and replace their rows."""
    for refresh in run.refreshing(EXTRACT):
        redone = extract_changes(run, refresh)
        with run.timed("extract_commit"):
            replace_rows(run, refresh, EXTRACT, redone)
            read_change_feeds(run, refresh, EXTRACT, FILES, *PROGRAM_TABLES)


def extract_changes(run: Run, refresh: Refresh) -> dict[str, Redone]:
    """Extract the rows of the changed files and make them inputs of the next steps."""
    with run.timed(EXTRACT):
        made = _read(run, refresh)
    gone = ids_of(refresh.changes)
    redone = {
        name: Redone(rows, gone) for name, rows in made.items() if name not in (FAILURES, *PROGRAM_TABLES)
    }
    for name in PROGRAM_TABLES:
        redone[name] = _differing(name, made[name], refresh)
    _warn_if_changed(run, refresh, redone[FILES].rows)
    for name, each in redone.items():
        refresh.inputs.put(name, each.owners, each.rows, is_shared=each.is_shared)
        refresh.touched[name] = frozenset(each.owners)
    redone[FAILURES] = Redone(_failures(run, refresh, made[FAILURES]), ())
    return redone


def _read(run: Run, refresh: Refresh) -> dict[str, pa.Table]:
    """Run the extractors; rows by table."""
    listing, options = run.listed.listings[refresh.repo_id], run.settings.extract
    paths = {change.path for change in refresh.read}
    entries = tuple(entry for entry in listing.entries if entry.path in paths)
    cores = processes_of(run.settings)
    tasks: list[Task] = []
    if entries:
        tasks += partition_files(
            [RepositoryListing(refresh.repo_id, structs.replace(listing, entries=entries))], None, cores
        )
    whole = {refresh.repo_id: listing}
    with scip_tasks(run, whole) as indexes, type_tasks(run, whole) as reports:
        packed = run.worker.call(extract_tasks, [*indexes, *reports, *tasks], options, cores)
    run.progress.update(EXTRACT, f"{len(entries):,}/{len(entries):,} changed files", last=True)
    return {
        name: joined(name, (each.streams[name] for each in packed)) for name in extract_tables(EXTRACTORS)
    }


def extract_tasks(tasks: Sequence[Task], options: ExtractOptions, processes: int) -> list[PackedChunk]:
    """Run the extractors on the files of tasks."""

    def extract(number: int) -> list[PackedChunk]:
        return list(extract_task(tasks[number], EXTRACTORS, options))

    return [each for pieces in map_in_forks(extract, len(tasks), processes, fewest=1) for each in pieces]


def _differing(name: str, made: pa.Table, refresh: Refresh) -> Redone:
    """Keep the rows of the files for which a tool reported other rows before."""
    inputs, table, nothing = refresh.inputs, catalog.table(name), made.schema.empty_table()
    now, before = by_owner(table, made), by_owner(table, inputs.all_files(name))
    owners = frozenset(
        each
        for each in now.keys() | before.keys()
        if not are_same(name, now.get(each, nothing), before.get(each, nothing))
    )
    unowned = made.filter(pc.is_null(made.column(table.owner or "")))
    is_shared = not are_same(name, unowned, inputs.unowned(name))
    rows = [now[each] for each in sorted(owners) if each in now] + ([unowned] if is_shared else [])
    return Redone(pa.concat_tables([nothing, *rows]), owners, is_shared)


def _warn_if_changed(run: Run, refresh: Refresh, files: pa.Table) -> None:
    """Warn if a file changed between the listing and the read."""
    planned = run.listed.file_states[refresh.repo_id]
    warn_if_source_changed(run, refresh.repo_id, {**planned, **stored_file_states(files.to_pylist())})


def _failures(run: Run, refresh: Refresh, made: pa.Table) -> pa.Table:
    """Collect all failures of the repository's files: readers look them up by the newest run."""
    before = run.base.repositories[refresh.repo_id].extract_run_id
    old = refresh.inputs.where(FAILURES, {"run_id": before})
    redone = pa.array(sorted(change.path for change in refresh.changes), pa.string())
    is_again = pc.or_(
        pc.is_in(old.column("path"), value_set=redone),
        pc.is_in(old.column("extractor_name"), value_set=pa.array(PROGRAM_TABLES)),
    )
    kept = old.filter(pc.invert(is_again))
    names = [column.name for column in table_columns(FAILURES)]
    rows = pa.concat_tables([kept.select(names), made.select(names)])
    _count_failures(run, refresh.repo_id, rows.column("extractor_name").to_pylist())
    whole = arrow_schema(catalog.table(FAILURES))
    arrays = [
        pa.repeat(run.run_id, rows.num_rows) if name == "run_id" else rows.column(name)
        for name in whole.names
    ]
    return pa.Table.from_arrays(arrays, schema=whole)


def _count_failures(run: Run, repo_id: str, extractors: Iterable[str]) -> None:
    with run.counting:
        counts = run.counts.setdefault(repo_id, Counter())
        for name in counts_of(counts, (FAILURES,)):
            del counts[name]
        counts.update(f"{FAILURES}/{name}" for name in extractors)
