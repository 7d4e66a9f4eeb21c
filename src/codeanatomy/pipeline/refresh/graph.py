"""Make the graph rows of files whose evidence, facts or relations changed.

    redone = graph_changes(run, refresh)
    refresh_graph(run)                         # the same, committed

Rows of the repository as a whole are merged from parts that are stored by file, and replaced if they differ.
Files are worked through in chunks, whose rows become data files at once: a change may
reach all files of a repository. Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.tables.extract import DELIBERATE_SKIPS
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.graph.file_view import READS, file_from_rows
from codeanatomy.graph.merge import EMPTY_SHARED, SHARED, merge_shared_rows, shared_row, unpack_shared_rows
from codeanatomy.graph.rows import TABLES, file_rows
from codeanatomy.normalize.rules import DIAGNOSTICS
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.graph_step import COPIES
from codeanatomy.pipeline.key_collisions import KEYS, KeyOwner, pack_keys, refuse_refreshed_keys, unpack_keys
from codeanatomy.pipeline.refresh.normalize import scope as normalized_files
from codeanatomy.pipeline.refresh.processes import map_in_forks, processes_of
from codeanatomy.pipeline.refresh.refresh_state import Refresh
from codeanatomy.pipeline.refresh.row_streams import (
    Streams,
    are_same,
    documents_in,
    joined,
    rows_in,
    streams_of,
)
from codeanatomy.pipeline.refresh.write import WRITERS, Redone, replace_rows, written_rows
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.steps import GRAPH
from codeanatomy.relate.relation_rows import RELATIONS

# By table, the one whose rows it has.
SOURCES = {**{name: name for name in TABLES}, **COPIES}
# Files whose rows are in memory at a time.
CHUNK_FILES = 256


def refresh_graph(run: Run) -> None:
    """Redo the graph of the files that the steps before have redone."""
    for refresh in run.refreshing(GRAPH):
        with run.timed(GRAPH):
            redone = graph_changes(run, refresh)
        with run.timed("graph_commit"):
            replace_rows(run, refresh, GRAPH, redone)


def graph_changes(run: Run, refresh: Refresh) -> dict[str, Redone]:
    """Make the graph rows of files, and of the repository as a whole where they differ."""
    changed = refresh.touched_in(FILES, SCIP, DIAGNOSTICS, RELATIONS) | normalized_files(refresh)
    wanted = sorted(changed)
    written: dict[str, list[DataFile]] = {name: [] for name in SOURCES}
    shared_parts = [EMPTY_SHARED]
    keys: list[KeyOwner] = []
    for start in range(0, len(wanted), CHUNK_FILES):
        rows, keys_of_files = _graph_files(run, refresh, wanted[start : start + CHUNK_FILES])
        keys += keys_of_files
        shared_parts += rows[SHARED].to_batches()
        with ThreadPoolExecutor(WRITERS) as pool:
            pending = {
                name: pool.submit(written_rows, run, run.store.table(name), rows[of], is_copy=name in COPIES)
                for name, of in SOURCES.items()
            }
            for name, future in pending.items():
                written[name] += future.result()
        run.progress.update(GRAPH, f"{min(start + CHUNK_FILES, len(wanted)):,}/{len(wanted):,} files")
    run.progress.update(GRAPH, f"{len(wanted):,}/{len(wanted):,} files", last=True)
    refuse_refreshed_keys(run, refresh, keys)
    shared_rows = pa.Table.from_batches(shared_parts)
    shared = _shared(refresh, wanted, shared_rows)
    redone = {SHARED: Redone(shared_rows, wanted)}
    for name, files in written.items():
        of = SOURCES[name]
        rows = shared.get(of, arrow_schema(catalog.table(of)).empty_table())
        redone[name] = Redone(rows, wanted, of in shared, name in COPIES, tuple(files))
    return redone


def _graph_files(
    run: Run, refresh: Refresh, wanted: Collection[str]
) -> tuple[dict[str, pa.Table], list[KeyOwner]]:
    """Make the graph rows of some files, by table, and return them with the definition keys."""
    evidence = {name: refresh.inputs.of_files(name, wanted) for name in READS}
    there = [each for each in wanted if each in evidence[FILES] and _is_wanted(evidence[FILES][each])]
    files = [
        (
            refresh.repo_id,
            one,
            evidence[FILES][one].column("path")[0].as_py(),
            {name: streams_of(rows[one]) for name, rows in evidence.items() if one in rows},
        )
        for one in there
    ]
    made = run.worker.call(graph_streams, files, run.request.profile, processes_of(run.settings))
    rows = {name: joined(name, [each[name] for each in made]) for name in (*TABLES, SHARED)}
    return rows, [owner for each in made for owner in unpack_keys(each[KEYS])]


def graph_streams(
    files: Sequence[tuple[str, str, str, Streams]], profile: Profile, processes: int
) -> list[dict[str, bytes]]:
    """Make the graph rows of packed files in forks; return them packed, by table."""

    def make(number: int) -> dict[str, bytes]:
        repo_id, file_id, path, streams = files[number]
        rows = documents_in(rows_in(streams))
        file = file_from_rows(repo_id, file_id, path, rows, instructions=profile == "full")
        made = file_rows(file, profile)
        tables = {**made.tables, SHARED: shared_row(file, made.shared)}
        packed = {name: pack_rows(batch) for name, batch in tables.items()}
        return {**packed, KEYS: pack_keys(repo_id, path, made.keys)}

    return list(map_in_forks(make, len(files), processes))


def _is_wanted(rows: pa.Table) -> bool:
    return rows.column("skipped_reason")[0].as_py() not in DELIBERATE_SKIPS


def _shared(refresh: Refresh, files: Collection[str], rows: pa.Table) -> Mapping[str, pa.Table]:
    """Merge the rows of the repository as a whole; only the tables in which they changed."""
    before = refresh.inputs.of_files(SHARED, files)
    if are_same(SHARED, rows, pa.concat_tables([rows.schema.empty_table(), *before.values()])):
        return {}
    refresh.inputs.put(SHARED, files, rows)
    stored = refresh.inputs.all_files(SHARED)
    now = merge_shared_rows(part for batch in stored.to_batches() for part in unpack_shared_rows(batch))
    result: dict[str, pa.Table] = {}
    for name, batch in now.items():
        schema = arrow_schema(catalog.table(name))
        rows = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        if not are_same(name, rows, refresh.inputs.unowned(name)):
            result[name] = rows
    return result
